//! A table that is made at its first use, which takes 40 % of the work: all threads ask for it at
//! once, one of them makes it, and the others wait. What follows is even.

use std::hint::black_box;
use std::sync::OnceLock;

static TABLE: OnceLock<Vec<u64>> = OnceLock::new();

fn compute(iterations: u64, mut seed: u64) -> u64 {
    for _ in 0..iterations {
        seed = black_box(seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
    }
    seed
}

fn table() -> &'static [u64] {
    TABLE.get_or_init(|| (0..4000).map(|entry| compute(80_000, entry)).collect())
}

fn main() {
    let threads: u64 = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let mut own = thread + 1;
                for _ in 0..6000 / threads {
                    own = compute(80_000, own ^ table()[(own >> 33) as usize % 4000]);
                }
                black_box(own);
            });
        }
    });
}
