//! The cost of a seek: random reads compared with sequential reads, both without the page cache.
//!
//! What the kernel reports of a device (`queue/rotational`) is a guess on virtual machines.

use std::path::Path;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::direct::{ALIGNMENT, Buffer, File};
use crate::error::Error;

/// Reads of each kind: they take a second on a disk that seeks.
const READS: u64 = 100;

/// A disk that seeks takes at least fifty times as long. A busy device without seeks may take a few
/// times as long, because of readahead.
const COSTLY: f64 = 8.0;

/// The result.
#[derive(Debug, Clone, Copy)]
pub struct Seeks {
    /// Median time of a random read divided by that of a sequential one.
    pub ratio: f64,
}

impl Seeks {
    /// Reads a file of at least a megabyte that is not in the cache of the device.
    pub fn measure(path: &Path) -> Result<Self, Error> {
        let file = File::open(path)?;
        let places = file.bytes / ALIGNMENT as u64;
        let mut random = SmallRng::seed_from_u64(1);
        let random_read = median(&file, || random.random_range(0..places))?;
        let mut next = 0..;
        let sequential_read = median(&file, || next.next().unwrap_or(0) % places)?;
        Ok(Self {
            ratio: random_read.as_secs_f64() / sequential_read.as_secs_f64(),
        })
    }

    /// The text of the fact `seeks`.
    pub fn fact(&self) -> &'static str {
        match self.ratio >= COSTLY {
            true => "cost time",
            false => "cost next to nothing on this device: schedulers cannot differ by them",
        }
    }
}

fn median(file: &File, mut place: impl FnMut() -> u64) -> Result<Duration, Error> {
    let mut buffer = Buffer::new(ALIGNMENT);
    let mut times = Vec::new();
    for _ in 0..READS {
        let begun = Instant::now();
        file.read(&mut buffer, place() * ALIGNMENT as u64)?;
        times.push(begun.elapsed());
    }
    times.sort();
    Ok(times[times.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_reads_that_take_many_times_as_long_are_seeks() {
        let fact = |ratio| Seeks { ratio }.fact();
        assert_eq!(fact(80.0), "cost time");
        assert!(fact(1.2).contains("schedulers cannot differ by them"));
    }
}
