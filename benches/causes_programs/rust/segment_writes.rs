//! A downloader's segments, written by all workers into one file, each at its own place. A write of
//! 128 KB holds the file's inode exclusively while it copies (10 to 25 microseconds); the checksum
//! outside takes 4. So 75 % or more exclude each other in the kernel, nothing in the program is shared.
//! The 16 MB are written over and over and never synced, so the disk is not waited for.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;

const SEGMENT: usize = 128 * 1024;
const SEGMENTS: usize = 128;
const WRITES: usize = 26_000;

fn checksum(head: &[u8], seed: u64) -> u64 {
    head.iter().step_by(8).fold(seed, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

fn main() {
    let threads: usize = std::env::args().nth(1).map_or(1, |it| it.parse().unwrap());
    let folder = std::env::args().nth(2).expect("a folder");
    let path = Path::new(&folder).join("segments.part");
    let file = OpenOptions::new().create(true).write(true).truncate(true).open(&path).unwrap();
    for segment in 0..SEGMENTS {
        file.write_all_at(&[0; SEGMENT], (segment * SEGMENT) as u64).unwrap();
    }
    let file = &file;
    let total: u64 = thread::scope(|scope| {
        let writers: Vec<_> = (0..threads)
            .map(|worker| {
                scope.spawn(move || {
                    let mut content = vec![worker as u8; SEGMENT];
                    let mut sum = worker as u64;
                    for number in (worker..WRITES).step_by(threads) {
                        sum = checksum(&content[..24 * 1024], sum);
                        content[..8].copy_from_slice(&sum.to_le_bytes());
                        file.write_all_at(&content, ((number % SEGMENTS) * SEGMENT) as u64).unwrap();
                    }
                    sum
                })
            })
            .collect();
        writers.into_iter().fold(0, |all, one| all ^ one.join().unwrap())
    });
    fs::remove_file(&path).unwrap();
    println!("{}", total);
}
