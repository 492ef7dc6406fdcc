//! Migrations and exact CPU time of a tree, and of each of its threads at its exit.
//!
//! A counter is on a CPU exactly while its task is, so the counter of migrations gives exact CPU
//! time as well.

use std::fs::File;
use std::io::Read;

use super::event::{self, Event};
use super::ring::{RECORD_BYTES, Ring, u32_at, u64_at};
use crate::{ProbeError, Result};

const PERF_RECORD_READ: u32 = 8;
/// Capacity for 2048 exits between two readings, on each CPU.
const RING_PAGES: usize = 16;

/// Counts of a process and all that it starts afterwards, or of one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Moves of a task to another CPU; none if the kernel's events may not be counted.
    pub migrations: Option<u64>,
    /// Time on a CPU.
    pub cpu_ns: u64,
}

impl Counts {
    /// The sum of both.
    pub fn plus(self, other: Self) -> Self {
        let migrations = self.migrations.zip(other.migrations);
        Self {
            migrations: migrations.map(|(one, other)| one + other),
            cpu_ns: self.cpu_ns + other.cpu_ns,
        }
    }
}

/// What one thread had counted on one CPU when it exited. Its counts are the sum over as many
/// of these as there are CPUs; the tree's first thread writes none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadRead {
    pub pid: u32,
    pub tid: u32,
    /// Which of the CPUs, counted from 0 in the list of those online.
    pub cpu_index: usize,
    pub counts: Counts,
}

/// Counters attached to a process tree.
#[derive(Debug)]
pub struct TreeCounter {
    counters: Vec<File>,
    rings: Vec<Ring>,
    /// Events of the kernel may be counted; migrations are such.
    kernel: bool,
}

impl TreeCounter {
    /// Why an unprivileged counter has no migrations.
    pub const NO_MIGRATIONS: &str = "migrations are events of the kernel: counting them needs \
                                     CAP_PERFMON or kernel.perf_event_paranoid ≤ 1";

    /// Without rings (too little lockable memory, or one inherited counter for all CPUs) the
    /// sums are there all the same.
    pub(super) fn new(counters: Vec<File>, kernel: bool) -> Self {
        let rings = counters
            .iter()
            .map(|counter| Ring::map(counter, RING_PAGES));
        Self {
            rings: rings.collect::<Result<Vec<_>>>().unwrap_or_default(),
            counters,
            kernel,
        }
    }

    /// The tree's counts so far.
    pub fn read(&mut self) -> Result<Counts> {
        let mut sum = Counts {
            migrations: self.kernel.then_some(0),
            cpu_ns: 0,
        };
        for counter in &mut self.counters {
            let mut bytes = [0; 16];
            counter
                .read_exact(&mut bytes)
                .map_err(|error| ProbeError::system("read a perf counter", error))?;
            sum = sum.plus(counts(&bytes, self.kernel));
        }
        Ok(sum)
    }

    /// How many reads a thread's exit gives; 0: none come.
    pub fn reads_per_thread(&self) -> usize {
        self.rings.len()
    }

    /// Reads what exiting threads have written. A thread may exit on another CPU than the ring's, and
    /// the kernel does not serialise two writers: sometimes one record overwrites another, or its place
    /// keeps old content. So callers must check each read for plausibility.
    pub fn take_reads(&mut self) -> Vec<ThreadRead> {
        let mut reads = Vec::new();
        for (cpu_index, ring) in self.rings.iter_mut().enumerate() {
            ring.take(|kind, record| {
                if kind == PERF_RECORD_READ {
                    reads.push(parse_read(record, cpu_index, self.kernel));
                }
            });
        }
        reads
    }
}

/// On one CPU; or with −1 on any, and then without an account of each thread.
pub(super) fn open(pid: u32, cpu: i32, kernel: bool) -> Result<File> {
    let mut flags = 0;
    if !kernel {
        flags |= event::FLAG_EXCLUDE_KERNEL;
    }
    if cpu >= 0 {
        flags |= event::FLAG_INHERIT_STAT;
    }
    let event = Event {
        config: event::CPU_MIGRATIONS,
        read_format: event::FORMAT_TOTAL_TIME_RUNNING,
        flags,
        ..Event::default()
    };
    event::open(pid, cpu, event)
}

/// Header, process, thread, count, time running.
fn parse_read(record: &[u8; RECORD_BYTES], cpu_index: usize, kernel: bool) -> ThreadRead {
    ThreadRead {
        pid: u32_at(record, 8),
        tid: u32_at(record, 12),
        cpu_index,
        counts: counts(&record[16..], kernel),
    }
}

fn counts(bytes: &[u8], kernel: bool) -> Counts {
    Counts {
        migrations: kernel.then(|| u64_at(bytes, 0)),
        cpu_ns: u64_at(bytes, 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_record_of_a_real_ring() {
        let mut bytes = [0; RECORD_BYTES];
        bytes[0] = 8;
        bytes[6] = 32;
        bytes[8..12].copy_from_slice(&3802u32.to_le_bytes());
        bytes[12..16].copy_from_slice(&3886u32.to_le_bytes());
        bytes[16] = 3;
        bytes[24..32].copy_from_slice(&1_234_567u64.to_le_bytes());
        let mut expected = ThreadRead {
            pid: 3802,
            tid: 3886,
            cpu_index: 1,
            counts: Counts {
                migrations: Some(3),
                cpu_ns: 1_234_567,
            },
        };
        assert_eq!(parse_read(&bytes, 1, true), expected);
        expected.counts.migrations = None;
        assert_eq!(parse_read(&bytes, 1, false), expected);
    }
}
