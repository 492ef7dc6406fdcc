//! A pool whose threads have queues of their own and steal from one another. One of the tasks, which
//! nobody can divide, is three fifths of the work.
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Mutex;
use std::thread;

const TASKS: usize = 400;
const STEPS: u64 = 400_000;
const LONG: u64 = STEPS * TASKS as u64 * 3 / 2;

type Queue = Mutex<VecDeque<u64>>;

fn compute(steps: u64) -> u64 {
    (0..steps).fold(1, |seed: u64, _| black_box(seed.wrapping_mul(6364136223846793005) + 1))
}

fn next(queues: &[Queue], own: usize) -> Option<u64> {
    if let Some(task) = queues[own].lock().unwrap().pop_front() {
        return Some(task);
    }
    (1..queues.len()).find_map(|far| queues[(own + far) % queues.len()].lock().unwrap().pop_back())
}

fn main() {
    let threads: usize = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    let queues: Vec<Queue> = (0..threads).map(|_| Queue::default()).collect();
    queues[0].lock().unwrap().push_back(LONG);
    for task in 0..TASKS {
        queues[task % threads].lock().unwrap().push_back(STEPS);
    }
    thread::scope(|scope| {
        for own in 0..threads {
            let queues = &queues;
            scope.spawn(move || {
                while let Some(steps) = next(queues, own) {
                    assert!(compute(steps) != 0, "the work was left out");
                }
            });
        }
    });
}
