//! The probing side of a hash join: each row looks into a read-only table of 16 MB, at a place that
//! depends on what the last look found. One miss at a time is under way for each worker, less than
//! 1 GB/s, so its latency, not the bandwidth, makes the time, and two workers have two misses under
//! way. The table is filled by all of them, each a part. Nothing limits.

use std::thread;

const ENTRIES: usize = 1 << 21;
const ROWS: u64 = 6_000_000;

fn mixed(key: u64) -> u64 {
    let key = (key ^ (key >> 31)).wrapping_mul(0x7fb5_d329_728e_a185);
    (key ^ (key >> 27)).wrapping_mul(0x81da_def4_bc2d_d44d)
}

fn probe(table: &[u64], rows: u64, seed: u64) -> u64 {
    let mut found = seed;
    for row in 0..rows {
        let place = mixed(row ^ found) >> 20;
        found = table[place as usize & (ENTRIES - 1)];
    }
    found
}

fn main() {
    let threads: usize = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    let mut table = vec![0u64; ENTRIES];
    let size = (ENTRIES + threads - 1) / threads;
    thread::scope(|scope| {
        for (number, part) in table.chunks_mut(size).enumerate() {
            scope.spawn(move || {
                for (i, entry) in part.iter_mut().enumerate() {
                    *entry = mixed((number * size + i) as u64 + 1);
                }
            });
        }
    });
    let table = &table[..];
    let total: u64 = thread::scope(|scope| {
        let probing: Vec<_> = (0..threads as u64)
            .map(|seed| scope.spawn(move || probe(table, ROWS / threads as u64, seed)))
            .collect();
        probing.into_iter().fold(0, |all, one| all ^ one.join().unwrap())
    });
    println!("{}", total);
}
