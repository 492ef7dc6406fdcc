//! A writer: a thread for each request under way, all along one file.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use super::{Streams, all};
use crate::direct::{Buffer, File};
use crate::error::Error;

/// One place after the other, round and round, until it is over; returns how many requests.
pub fn write(file: &File, streams: &Streams, is_over: &AtomicBool) -> Result<u64, Error> {
    let next = AtomicU64::new(0);
    let places = file.bytes / streams.write_bytes as u64;
    let one_at_a_time = || {
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
        let threads = (0..streams.depth).map(|_| scope.spawn(one_at_a_time));
        let written: Vec<u64> = all(threads.collect())?;
        Ok(written.iter().sum())
    })
}
