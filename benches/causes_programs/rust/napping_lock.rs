// Threads that try a lock, and sleep before they try again. It is held for 70 % of each operation.
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const OPERATIONS: usize = 300;

fn compute(iterations: u64, mut seed: u64) -> u64 {
    for _ in 0..iterations {
        seed = std::hint::black_box(seed.wrapping_mul(6364136223846793005).wrapping_add(1));
    }
    seed
}

fn main() {
    let threads: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let state = Arc::new(Mutex::new(1_u64));
    let workers: Vec<_> = (0..threads)
        .map(|_| {
            let state = state.clone();
            thread::spawn(move || {
                let mut own = 1;
                for _ in 0..OPERATIONS / threads {
                    loop {
                        if let Ok(mut held) = state.try_lock() {
                            *held = compute(700_000, *held);
                            break;
                        }
                        thread::sleep(Duration::from_micros(300));
                    }
                    own = compute(300_000, own);
                }
                own
            })
        })
        .collect();
    for worker in workers {
        assert_ne!(worker.join().unwrap(), 0);
    }
}
