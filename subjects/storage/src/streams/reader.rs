//! A reader: random places of one file, each waited for.

use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::Streams;
use crate::direct::{Buffer, File};
use crate::error::Error;

const DIGITS: u8 = 3;
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Times in ns, 0.1 % exact.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("bounds are constant and valid")
}

/// Reads for the streams' time; returns how long each took from when it was meant to be sent, so
/// that a slow one counts for those that it keeps waiting.
pub fn read(file: &File, streams: &Streams, number: u64) -> Result<Histogram<u64>, Error> {
    let mut random = SmallRng::seed_from_u64(streams.seed.wrapping_add(number));
    let mut buffer = Buffer::new(streams.read_bytes);
    let mut times = histogram();
    let places = file.bytes / streams.read_bytes as u64;
    let gap = streams
        .read_rate
        .map(|rate| Duration::from_secs_f64(1.0 / rate));
    let begun = Instant::now();
    let mut meant = begun;
    while begun.elapsed() < streams.duration {
        match gap {
            Some(gap) => {
                meant += gap;
                thread::sleep(meant.saturating_duration_since(Instant::now()));
            }
            None => meant = Instant::now(),
        }
        let place = random.random_range(0..places);
        file.read(&mut buffer, place * streams.read_bytes as u64)?;
        times.saturating_record(meant.elapsed().as_nanos() as u64);
    }
    Ok(times)
}
