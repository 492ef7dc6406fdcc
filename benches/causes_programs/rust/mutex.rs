//! A std Mutex that is held for 70 % of each operation, of unequal lengths.

use std::hint::black_box;
use std::sync::Mutex;

fn compute(iterations: u64, mut seed: u64) -> u64 {
    for _ in 0..iterations {
        seed = black_box(seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    seed
}

fn main() {
    let threads: u64 = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    let shared = Mutex::new(1);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let shared = &shared;
            scope.spawn(move || {
                let mut own = thread + 1;
                for _ in 0..3000 / threads {
                    own = compute(10_000 + (own >> 33) % 30_000, own);
                    let mut shared = shared.lock().unwrap();
                    *shared = compute(40_000 + (*shared >> 33) % 40_000, *shared);
                }
            });
        }
    });
}
