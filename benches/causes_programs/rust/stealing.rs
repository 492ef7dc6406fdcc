//! Fork and join: each thread splits ranges in halves, keeps them in a queue of its own, and takes
//! from the others' queues when it has none left. Nothing limits it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;
use std::thread;

const NUMBERS: u64 = 6_000_000;
const SMALL: u64 = 2_000;

type Queue = Mutex<VecDeque<Range<u64>>>;

fn steps(mut number: u64) -> u64 {
    let mut steps = 0;
    while number > 1 {
        number = if number % 2 == 0 { number / 2 } else { 3 * number + 1 };
        steps += 1;
    }
    steps
}

fn found(queues: &[Queue], own: usize) -> Option<Range<u64>> {
    if let Some(range) = queues[own].lock().unwrap().pop_back() {
        return Some(range);
    }
    let others = (1..queues.len()).map(|next| (own + next) % queues.len());
    others.into_iter().find_map(|other| queues[other].lock().unwrap().pop_front())
}

fn work(queues: &[Queue], own: usize, left: &AtomicU64) -> u64 {
    let mut sum = 0;
    while left.load(Ordering::Acquire) > 0 {
        let Some(mut range) = found(queues, own) else {
            thread::yield_now();
            continue;
        };
        while range.end - range.start > SMALL {
            let middle = range.start + (range.end - range.start) / 2;
            queues[own].lock().unwrap().push_back(middle..range.end);
            range.end = middle;
        }
        let numbers = range.end - range.start;
        sum += range.map(steps).sum::<u64>();
        left.fetch_sub(numbers, Ordering::Release);
    }
    sum
}

fn main() {
    let threads: usize = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    let queues: Vec<Queue> = (0..threads).map(|_| Queue::default()).collect();
    queues[0].lock().unwrap().push_back(1..NUMBERS + 1);
    let left = AtomicU64::new(NUMBERS);
    let sum: u64 = thread::scope(|scope| {
        let (queues, left) = (&queues, &left);
        let all: Vec<_> =
            (0..threads).map(|own| scope.spawn(move || work(queues, own, left))).collect();
        all.into_iter().map(|one| one.join().unwrap()).sum()
    });
    assert!(sum > 0, "the work was left out");
}
