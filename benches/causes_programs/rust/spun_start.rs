// One thread reads in what all need, for two fifths of the work; the others spin, with the hint that
// they do, until it is there. What follows is even.
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn compute(iterations: u64, mut seed: u64) -> u64 {
    for _ in 0..iterations {
        seed = black_box(seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
    }
    seed
}

static READY: AtomicBool = AtomicBool::new(false);

fn main() {
    let threads: u64 = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    let workers: Vec<_> = (0..threads)
        .map(|index| {
            thread::spawn(move || {
                if index == 0 {
                    compute(100_000_000, 1);
                    READY.store(true, Ordering::Release);
                }
                while !READY.load(Ordering::Acquire) {
                    spin_loop();
                }
                compute(150_000_000 / threads, index + 1)
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
}
