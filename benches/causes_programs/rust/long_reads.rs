// Readers that compute for long while they hold a RwLock for reading; one in some hundred changes it.
use std::hint::black_box;
use std::sync::RwLock;
use std::thread;

fn compute(iterations: u64, mut seed: u64) -> u64 {
    for _ in 0..iterations {
        seed = black_box(seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
    }
    seed
}

static TABLE: RwLock<[u64; 64]> = RwLock::new([1; 64]);

fn main() {
    let threads: u64 = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    let workers: Vec<_> = (0..threads)
        .map(|index| {
            thread::spawn(move || {
                let mut own = index + 1;
                for i in 0..4000 / threads {
                    if i % 300 == 299 {
                        TABLE.write().unwrap()[(own >> 58) as usize] = own;
                    } else {
                        let table = TABLE.read().unwrap();
                        own = compute(40_000, own + table[(own >> 58) as usize]);
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
}
