//! N workers hand results to one thread that writes them down, which takes most of the time.

use std::hint::black_box;
use std::sync::mpsc::sync_channel;

fn compute(iterations: u64, mut seed: u64) -> u64 {
    for _ in 0..iterations {
        seed = black_box(seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    seed
}

fn main() {
    let workers: u64 = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    let (to_writer, results) = sync_channel::<u64>(32);
    let writer = std::thread::Builder::new().name("writer".into()).spawn(move || {
        results.iter().fold(0, |sum, result| compute(150_000, sum ^ result))
    });
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let to_writer = to_writer.clone();
            scope.spawn(move || {
                for _ in 0..2000 / workers {
                    to_writer.send(compute(100_000, worker)).unwrap();
                }
            });
        }
    });
    drop(to_writer);
    black_box(writer.unwrap().join().unwrap());
}
