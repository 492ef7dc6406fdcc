//! Births and deaths of all threads of a tree, each with its time, and what its processes map as program text.

use std::fs::File;

use super::event::{self, Event};
use super::ring::{Ring, u32_at, u64_at};
use super::texts::TextMapping;
use crate::Result;

const PERF_RECORD_LOST: u32 = 2;
const PERF_RECORD_EXIT: u32 = 4;
const PERF_RECORD_FORK: u32 = 7;
const PERF_RECORD_MMAP2: u32 = 10;
/// Length of the record of a birth or a death.
const LIFE_BYTES: usize = 32;
/// Capacity for 8192 births and deaths, or some 2500 mappings, between two readings, on each CPU: thousands of threads may
/// be killed at once while the runner waits for a CPU. With the counters' rings this is within the
/// 516 KiB a CPU that any user may lock; a second role gets what is left.
const RING_PAGES: usize = 64;

/// A birth or a death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// Monotonic time: of a birth, just before the thread may run; of a death, late in its exit,
    /// after its last instruction of its own (before Linux 6.16 a joiner may run earlier yet).
    pub at_ns: u64,
    pub pid: u32,
    /// The process that it is from; its own, if it is no process's first thread.
    pub parent: u32,
    pub tid: u32,
    pub event: LifeEvent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifeEvent {
    Birth,
    Death,
}

impl Life {
    /// The birth of a process: of its first thread.
    pub fn is_process_birth(&self) -> bool {
        self.event == LifeEvent::Birth && self.pid == self.tid
    }
}

/// What was recorded since the last reading, in the order of time on each CPU.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Lives {
    pub lives: Vec<Life>,
    pub texts: Vec<TextMapping>,
    /// How many more were dropped because the ring was full.
    pub lost: u64,
}

/// The births, deaths and program texts of a process tree.
///
/// Its descriptors must not be polled: every death of a thread would wake the poller, whether there
/// is anything to read or not.
#[derive(Debug)]
pub struct TreeLives {
    rings: Vec<Ring>,
    /// Kept open, since closing them ends the recording.
    _events: Vec<File>,
}

impl TreeLives {
    pub(super) fn new(events: Vec<File>) -> Result<Self> {
        let rings = events.iter().map(|event| Ring::map(event, RING_PAGES));
        Ok(Self {
            rings: rings.collect::<Result<_>>()?,
            _events: events,
        })
    }

    /// Reads what is new.
    pub fn take(&mut self) -> Lives {
        let mut taken = Lives::default();
        for ring in &mut self.rings {
            ring.take_whole(|kind, record| taken.add(kind, record));
        }
        taken
    }
}

impl Lives {
    /// Adds a record; one that is too short for its kind is left out.
    fn add(&mut self, kind: u32, record: &[u8]) {
        match kind {
            PERF_RECORD_FORK => self.lives.extend(parse(record, LifeEvent::Birth)),
            PERF_RECORD_EXIT => self.lives.extend(parse(record, LifeEvent::Death)),
            PERF_RECORD_MMAP2 => self.texts.extend(TextMapping::parse(record)),
            // Header, identity of the event, number.
            PERF_RECORD_LOST if record.len() >= 24 => self.lost += u64_at(record, 16),
            _ => {}
        }
    }
}

/// It counts what [`TreeCounter`](super::TreeCounter) reads of the whole tree: migrations, if events of the `kernel`
/// may be counted, and its time running.
pub(super) fn open(pid: u32, cpu: i32, kernel: bool) -> Result<File> {
    let (config, whose) = match kernel {
        true => (event::CPU_MIGRATIONS, 0),
        false => (event::DUMMY, event::FLAG_EXCLUDE_KERNEL),
    };
    let event = Event {
        config,
        read_format: event::FORMAT_TOTAL_TIME_RUNNING,
        flags: whose
            | event::FLAG_TASK
            | event::FLAG_MMAP
            | event::FLAG_MMAP2
            | event::FLAG_USE_CLOCKID,
        clock: libc::CLOCK_MONOTONIC,
        ..Event::default()
    };
    event::open(pid, cpu, event)
}

/// Header, process, its parent, thread, its parent, time.
fn parse(record: &[u8], event: LifeEvent) -> Option<Life> {
    (record.len() >= LIFE_BYTES).then(|| Life {
        at_ns: u64_at(record, 24),
        pid: u32_at(record, 8),
        parent: u32_at(record, 12),
        tid: u32_at(record, 16),
        event,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_birth_of_a_thread_and_of_a_process() {
        let mut bytes = [0; LIFE_BYTES];
        bytes[0] = 7;
        bytes[6] = 32;
        for (at, number) in [(8, 500u32), (12, 500), (16, 501), (20, 500)] {
            bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        bytes[24..32].copy_from_slice(&77_000u64.to_le_bytes());
        let mut taken = Lives::default();
        (0..LIFE_BYTES).for_each(|length| taken.add(7, &bytes[..length]));
        assert_eq!(taken, Lives::default());
        taken.add(7, &bytes);
        let life = taken.lives[0];
        let expected = Life {
            at_ns: 77_000,
            pid: 500,
            parent: 500,
            tid: 501,
            event: LifeEvent::Birth,
        };
        assert_eq!(life, expected);
        assert!(!life.is_process_birth());
        assert!(Life { tid: 500, ..life }.is_process_birth());
    }
}
