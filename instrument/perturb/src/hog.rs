//! Takes memory bandwidth, or CPU time alone, in doses: what the first costs more than the second is
//! what the bandwidth costs.

use std::convert::Infallible;
use std::hint::black_box;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use crate::error::Error;

/// It works for its share of each period. Shorter ones are rounded by the scheduler, longer ones may
/// miss a short trial.
const PERIOD: Duration = Duration::from_millis(10);
/// Bytes between two looks at the clock: some tens of microseconds.
const STRIDE_BYTES: usize = 1 << 18;
const MIB: usize = 1 << 20;

/// Take memory bandwidth, or CPU time alone, until a signal ends it
#[derive(Debug, Args)]
pub struct Hog {
    /// What it takes
    #[arg(long, value_enum)]
    take: Take,
    /// The part of the time for which it works, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = share)]
    share: f64,
    /// Memory that it copies, larger than the caches
    #[arg(long, value_name = "MIB", default_value_t = 64,
          value_parser = clap::value_parser!(u32).range(1..=65536))]
    megabytes: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Take {
    /// Copy memory
    Memory,
    /// Compute in registers
    Cpu,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("a number from 0 to 1".into()),
    }
}

impl Hog {
    /// Works until a signal ends the process.
    pub fn run(&self) -> Result<Infallible, Error> {
        let half = match self.take {
            Take::Memory => self.megabytes as usize * MIB / 2,
            Take::Cpu => 0,
        };
        let (from, mut to) = (filled(half)?, filled(half)?);
        let mut place = 0;
        let busy = PERIOD.mul_f64(self.share);
        loop {
            let begun = Instant::now();
            while begun.elapsed() < busy {
                place = match self.take {
                    Take::Memory => copied(&from, &mut to, place),
                    Take::Cpu => computed(place),
                };
            }
            std::thread::sleep(PERIOD.saturating_sub(begun.elapsed()));
        }
    }
}

fn filled(bytes: usize) -> Result<Vec<u8>, Error> {
    let mut memory = Vec::new();
    let failed = |_| Error::Memory(bytes / MIB * 2);
    memory.try_reserve_exact(bytes).map_err(failed)?;
    // Pages of zeros would all be the same one, which the caches hold.
    memory.resize(bytes, 1);
    Ok(memory)
}

/// Copies the next stride; the place behind it.
fn copied(from: &[u8], to: &mut [u8], place: usize) -> usize {
    let end = (place + STRIDE_BYTES).min(from.len());
    to[place..end].copy_from_slice(&from[place..end]);
    black_box(&to);
    if end == from.len() { 0 } else { end }
}

fn computed(seed: usize) -> usize {
    let mut state = seed as u64 | 1;
    for _ in 0..1000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_the_memory_is_copied_again_and_again() {
        let from = vec![7; STRIDE_BYTES * 2 + 5];
        let mut to = vec![0; from.len()];
        let mut place = 0;
        for expected in [STRIDE_BYTES, STRIDE_BYTES * 2, 0] {
            place = copied(&from, &mut to, place);
            assert_eq!(place, expected);
        }
        assert_eq!(from, to);
    }

    #[test]
    fn a_share_is_from_0_to_1() {
        assert_eq!(share("0.5"), Ok(0.5));
        for wrong in ["-0.1", "1.1", "nan", "x", ""] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
