//! A pool whose threads take the next task from a counter. The last of 201 tasks is as long as all
//! the others: one thread computes it while the others have nothing left.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

const TASKS: usize = 201;

fn compute(iterations: u64, mut seed: u64) -> u64 {
    for _ in 0..iterations {
        seed = black_box(seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    seed
}

fn main() {
    let threads: u64 = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| loop {
                match next.fetch_add(1, Ordering::Relaxed) {
                    task if task + 1 < TASKS => compute(600_000, task as u64),
                    task if task + 1 == TASKS => compute(120_000_000, task as u64),
                    _ => break,
                };
            });
        }
    });
}
