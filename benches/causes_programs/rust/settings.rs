//! Requests that look up a setting under the read lock of one RwLock, for a few instructions each:
//! nobody ever writes, but the lock counts its readers.

use std::hint::black_box;
use std::sync::RwLock;

fn main() {
    let threads: u64 = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    let settings: RwLock<Vec<u64>> = RwLock::new((0..64).collect());
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let settings = &settings;
            scope.spawn(move || {
                let mut seed = thread + 1;
                for _ in 0..40_000_000 / threads {
                    let place = (seed >> 58) as usize;
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    seed = seed.wrapping_add(settings.read().unwrap()[place]);
                }
                black_box(seed);
            });
        }
    });
}
