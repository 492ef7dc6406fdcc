//! The counts of a simulation.

use hdrhistogram::Histogram;

use crate::request::{Direction, Io, SECTOR_BYTES};
use crate::time::Time;

/// An hour in µs: longer times count as this.
const LONGEST: u64 = 3_600_000_000;

/// The I/O of one process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    pub requests: u64,
    pub bytes: u64,
    /// When it ended.
    pub end: Time,
}

/// The counts of a simulation.
#[derive(Debug, Clone)]
pub struct Account {
    /// When the last request was done.
    pub end: Time,
    /// I/Os that were merged into others, and requests that went to the disks.
    pub merged: u64,
    pub sent: u64,
    /// Sums over the disks: time busy, and time idle although requests waited.
    pub busy: Time,
    pub idled: Time,
    pub shares: Vec<Share>,
    /// Times from submission to the end, in µs.
    pub reads: Histogram<u64>,
    pub writes: Histogram<u64>,
    /// Sums of the same in ns, since histograms round.
    pub read_time: Time,
    pub write_time: Time,
}

impl Account {
    pub fn new(processes: usize) -> Self {
        let histogram = || Histogram::new_with_max(LONGEST, 3).expect("the range is allowed");
        Self {
            end: 0,
            merged: 0,
            sent: 0,
            busy: 0,
            idled: 0,
            shares: vec![Share::default(); processes],
            reads: histogram(),
            writes: histogram(),
            read_time: 0,
            write_time: 0,
        }
    }

    pub fn io_done(&mut self, process: usize, io: &Io, took: Time) {
        let share = &mut self.shares[process];
        share.requests += 1;
        share.bytes += u64::from(io.sectors) * SECTOR_BYTES;
        let (histogram, time) = match io.direction {
            Direction::Read => (&mut self.reads, &mut self.read_time),
            Direction::Write => (&mut self.writes, &mut self.write_time),
        };
        histogram.saturating_record(took / 1000);
        *time += took;
    }

    pub fn process_ended(&mut self, process: usize, now: Time) {
        self.shares[process].end = now;
    }

    pub fn requests(&self) -> u64 {
        self.shares.iter().map(|it| it.requests).sum()
    }

    /// Mean time of a read in ns; not a number if there was none.
    pub fn mean_read(&self) -> f64 {
        self.read_time as f64 / self.reads.len() as f64
    }

    /// Mean time of a write in ns; not a number if there was none.
    pub fn mean_write(&self) -> f64 {
        self.write_time as f64 / self.writes.len() as f64
    }
}
