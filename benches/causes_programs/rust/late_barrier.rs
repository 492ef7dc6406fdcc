//! Rounds with the standard library's barrier, which is made of a mutex and a condition: one thread,
//! another in each round, has three times the work of the others.

use std::hint::black_box;
use std::sync::Barrier;

const ROUNDS: usize = 100;

fn compute(iterations: u64, mut seed: u64) -> u64 {
    for _ in 0..iterations {
        seed = black_box(seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
    }
    seed
}

fn main() {
    let threads: usize = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    let barrier = Barrier::new(threads);
    let share = 4_000_000 / (threads as u64 + 2);
    std::thread::scope(|scope| {
        for index in 0..threads {
            let barrier = &barrier;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let is_slow = threads == 1 || round % threads == index;
                    black_box(compute(if is_slow { 3 * share } else { share }, index as u64));
                    barrier.wait();
                }
            });
        }
    });
}
