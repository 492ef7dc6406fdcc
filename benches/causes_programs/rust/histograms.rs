//! Threads that count bytes in a histogram each; the first adds up the few numbers at the end.
//! Nothing limits it.

use std::thread;

const BLOCKS: u64 = 160_000;

fn histogram(blocks: u64, mut seed: u64) -> Vec<u64> {
    let mut counts = vec![0; 256];
    let mut block = [0u8; 4096];
    for _ in 0..blocks {
        for place in block.chunks_exact_mut(8) {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            place.copy_from_slice(&(seed ^ seed >> 29).to_le_bytes());
        }
        for &byte in &block {
            counts[usize::from(byte)] += 1;
        }
    }
    counts
}

fn main() {
    let threads: u64 = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    let all: Vec<_> = (0..threads)
        .map(|index| thread::spawn(move || histogram(BLOCKS / threads, index + 1)))
        .collect();
    let mut total = vec![0; 256];
    for one in all {
        for (sum, count) in total.iter_mut().zip(one.join().unwrap()) {
            *sum += count;
        }
    }
    assert_eq!(total.iter().sum::<u64>(), BLOCKS / threads * threads * 4096);
}
