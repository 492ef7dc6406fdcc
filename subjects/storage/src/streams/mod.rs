//! Streams of requests around the page cache: writers with many requests under way, and readers
//! that wait for each.
//!
//! A load like this tells schedulers apart: whether a read has to wait behind all writes.

mod reader;
mod writer;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::direct::File;
use crate::error::Error;

pub use reader::histogram;

/// What runs at the same time.
#[derive(Debug, Clone)]
pub struct Streams {
    pub writers: usize,
    /// Requests that a writer has under way.
    pub depth: usize,
    pub write_bytes: usize,
    pub readers: usize,
    /// Reads a second and reader, at even intervals whatever the answers; one after the other if
    /// `None`.
    pub read_rate: Option<f64>,
    pub read_bytes: usize,
    /// Of each writer's and reader's file.
    pub file_bytes: u64,
    pub duration: Duration,
    pub seed: u64,
}

/// What was done.
#[derive(Debug)]
pub struct Outcome {
    pub took: Duration,
    /// Requests of each writer.
    pub writes: Vec<u64>,
    /// Requests of each reader, and their times in ns, from when each was meant to be sent.
    pub reads: Vec<u64>,
    pub read_times: Histogram<u64>,
}

/// Files of the streams, filled, by their places.
pub struct Prepared<'a> {
    streams: &'a Streams,
    writers: Vec<File>,
    readers: Vec<File>,
}

/// Makes a file for each stream; a write to what is not there yet would wait for the file system.
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
    /// Of all files.
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
                .map(|file| scope.spawn(|| writer::write(file, streams, &is_over)))
                .collect();
            let readers: Vec<_> = self
                .readers
                .iter()
                .zip(0..)
                .map(|(file, number)| scope.spawn(move || reader::read(file, streams, number)))
                .collect();
            let read = all(readers);
            if self.readers.is_empty() {
                thread::sleep(streams.duration);
            }
            is_over.store(true, Relaxed);
            let took = begun.elapsed();
            let writes = all(writers)?;
            let mut read_times = reader::histogram();
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
