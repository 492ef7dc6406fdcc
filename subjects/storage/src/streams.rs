//! Streams of requests that bypass the page cache: writers with many requests in flight, and
//! readers with one.
//!
//! Such a load distinguishes schedulers: whether a read has to wait for all writes before it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::direct::{Buffer, File};
use crate::error::Error;

/// The streams that run concurrently.
#[derive(Debug, Clone)]
pub struct Streams {
    pub writers: usize,
    /// Requests of a writer in flight.
    pub depth: usize,
    pub write_bytes: usize,
    pub readers: usize,
    /// Reads a second of each reader, at even intervals (open loop); `None`: one after the other.
    pub read_rate: Option<f64>,
    pub read_bytes: usize,
    /// Size of the file of each writer and reader.
    pub file_bytes: u64,
    pub duration: Duration,
    pub seed: u64,
}

/// The results.
#[derive(Debug)]
pub struct Outcome {
    pub took: Duration,
    /// Requests of each writer.
    pub writes: Vec<u64>,
    /// Requests of each reader.
    pub reads: Vec<u64>,
    /// Times of the reads in ns, from the intended start of each.
    pub read_times: Histogram<u64>,
}

/// The files of the streams, already written.
pub struct Prepared<'a> {
    streams: &'a Streams,
    writers: Vec<File>,
    readers: Vec<File>,
}

/// Writes a file for each stream, so that later writes need no allocation by the file system.
pub fn prepare<'a>(streams: &'a Streams, folder: &Path) -> Result<Prepared<'a>, Error> {
    let make = |kind: &str, count| -> Result<Vec<File>, Error> {
        let names = (1..=count).map(|number| folder.join(format!("{kind}-{number}")));
        names
            .map(|it| File::make(&it, streams.file_bytes))
            .collect()
    };
    Ok(Prepared {
        streams,
        writers: make("writer", streams.writers)?,
        readers: make("reader", streams.readers)?,
    })
}

impl Prepared<'_> {
    /// The paths of all files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let files = self.readers.iter().chain(&self.writers);
        files.map(|it| it.path.as_path())
    }

    /// Runs all streams for their time.
    pub fn run(&self) -> Result<Outcome, Error> {
        let streams = self.streams;
        let is_over = AtomicBool::new(false);
        let begun = Instant::now();
        thread::scope(|scope| {
            let writers: Vec<_> = self
                .writers
                .iter()
                .map(|file| scope.spawn(|| write(file, streams, &is_over)))
                .collect();
            let readers: Vec<_> = self
                .readers
                .iter()
                .zip(0..)
                .map(|(file, number)| scope.spawn(move || read_at_random(file, streams, number)))
                .collect();
            let read = all(readers);
            if self.readers.is_empty() {
                thread::sleep(streams.duration);
            }
            is_over.store(true, Relaxed);
            let took = begun.elapsed();
            let writes = all(writers)?;
            let mut read_times = histogram();
            let mut reads = Vec::new();
            for times in read? {
                reads.push(times.len());
                read_times += times;
            }
            Ok(Outcome {
                took,
                writes,
                reads,
                read_times,
            })
        })
    }
}

fn all<T>(threads: Vec<thread::ScopedJoinHandle<Result<T, Error>>>) -> Result<Vec<T>, Error> {
    let ends = threads.into_iter().map(|it| it.join().expect("no panic"));
    ends.collect()
}

const DIGITS: u8 = 3;
const LONGEST_NS: u64 = 3_600_000_000_000;

/// A histogram of times in ns, with a precision of 0.1 %.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("bounds are constant and valid")
}

/// A reader: reads at random positions, one request at a time. Times run from the intended start of
/// each read, so that a slow read also counts for those that it delays.
fn read_at_random(file: &File, streams: &Streams, number: u64) -> Result<Histogram<u64>, Error> {
    let mut random = SmallRng::seed_from_u64(streams.seed.wrapping_add(number));
    let mut buffer = Buffer::new(streams.read_bytes);
    let mut times = histogram();
    let places = file.bytes / streams.read_bytes as u64;
    let gap = streams
        .read_rate
        .map(|rate| Duration::from_secs_f64(1.0 / rate));
    let begun = Instant::now();
    let mut intended = begun;
    while begun.elapsed() < streams.duration {
        match gap {
            Some(gap) => {
                intended += gap;
                thread::sleep(intended.saturating_duration_since(Instant::now()));
            }
            None => intended = Instant::now(),
        }
        let place = random.random_range(0..places);
        file.read(&mut buffer, place * streams.read_bytes as u64)?;
        times.saturating_record(intended.elapsed().as_nanos() as u64);
    }
    Ok(times)
}

/// A writer: a thread for each request in flight, all along one file, again and again until
/// `is_over`. Returns the number of requests.
fn write(file: &File, streams: &Streams, is_over: &AtomicBool) -> Result<u64, Error> {
    let next = AtomicU64::new(0);
    let places = file.bytes / streams.write_bytes as u64;
    let write_requests = || {
        let buffer = Buffer::new(streams.write_bytes);
        let mut written = 0;
        while !is_over.load(Relaxed) {
            let place = next.fetch_add(1, Relaxed) % places;
            file.write(&buffer, place * streams.write_bytes as u64)?;
            written += 1;
        }
        Ok(written)
    };
    thread::scope(|scope| {
        let threads = (0..streams.depth).map(|_| scope.spawn(write_requests));
        let written: Vec<u64> = all(threads.collect())?;
        Ok(written.iter().sum())
    })
}
