//! What a seek costs: reads anywhere in a file against reads one behind the other, both around the
//! page cache.
//!
//! What the kernel says of a device (`queue/rotational`) is a guess where the machine is virtual.

use std::path::Path;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::direct::{ALIGNMENT, Buffer, File};
use crate::error::Error;

/// Reads of each kind: a second on a disk that seeks.
const READS: u64 = 100;

/// A disk that seeks takes fifty times as long or more; a busy device without a seek may take some
/// times as long, since what lies behind is read ahead somewhere.
const COSTLY: f64 = 8.0;

/// What was measured.
#[derive(Debug, Clone, Copy)]
pub struct Seeks {
    /// Median time of a read anywhere over that of a read of what lies behind the last one.
    pub ratio: f64,
}

impl Seeks {
    /// Reads a file, of a megabyte at least, that is not in the memory of the device.
    pub fn measure(path: &Path) -> Result<Self, Error> {
        let file = File::open(path)?;
        let places = file.bytes / ALIGNMENT as u64;
        let mut random = SmallRng::seed_from_u64(1);
        let anywhere = median(&file, || random.random_range(0..places))?;
        let mut next = 0..;
        let behind = median(&file, || next.next().unwrap_or(0) % places)?;
        Ok(Self {
            ratio: anywhere.as_secs_f64() / behind.as_secs_f64(),
        })
    }

    /// In words, for the report.
    pub fn says(&self) -> &'static str {
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
    fn reads_anywhere_that_take_many_times_as_long_are_seeks() {
        let says = |ratio| Seeks { ratio }.says();
        assert_eq!(says(80.0), "cost time");
        assert!(says(1.2).contains("schedulers cannot differ by them"));
    }
}
