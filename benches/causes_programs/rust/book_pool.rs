//! A pool whose threads share the receiver of a channel by a mutex. The guard of a `while let`
//! lives until the end of its body, so that a thread holds the mutex while it works.

use std::hint::black_box;
use std::sync::mpsc::channel;
use std::sync::Mutex;

fn compute(iterations: u64, mut seed: u64) -> u64 {
    for _ in 0..iterations {
        seed = black_box(seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    seed
}

fn main() {
    let threads: u64 = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    let (sender, receiver) = channel();
    for job in 0..3000_u64 {
        sender.send(job).unwrap();
    }
    drop(sender);
    let receiver = Mutex::new(receiver);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Ok(job) = receiver.lock().unwrap().recv() {
                    compute(60_000 + job % 7 * 10_000, job);
                }
            });
        }
    });
}
