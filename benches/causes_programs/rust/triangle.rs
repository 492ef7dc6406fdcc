//! Rows of a triangle, dealt out in blocks of equal height: the last thread has most of the work.

use std::hint::black_box;

const ROWS: u64 = 2000;

fn compute(iterations: u64, mut seed: u64) -> u64 {
    for _ in 0..iterations {
        seed = black_box(seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    seed
}

fn main() {
    let threads: u64 = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for row in ROWS * thread / threads..ROWS * (thread + 1) / threads {
                    black_box(compute(200 * row, row));
                }
            });
        }
    });
}
