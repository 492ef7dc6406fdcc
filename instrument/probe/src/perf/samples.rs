//! Where in their programs the threads of a tree run: samples of the instruction pointer in user mode.
//!
//! A clock of the kernel that runs while a thread is on a CPU takes them, so any user may ask for it and no
//! counter of the hardware is needed. It is set anew whenever a thread gets a CPU, so it can be paused.

use std::fs::File;

use super::event::{self, Event};
use super::ring::{Ring, u32_at, u64_at};
use crate::Result;

const PERF_RECORD_LOST: u32 = 2;
const PERF_RECORD_SAMPLE: u32 = 9;
/// Capacity for some 100 samples between two readings, on each CPU.
const RING_PAGES: usize = 8;
/// CPU time between two samples of a thread: no multiple of what programs and the kernel do regularly.
const PERIOD_NS: u64 = 5_003_000;

/// Bytes of the stack that a sample has: they lead from the inside of a library to what was called of it.
const STACK_BYTES: u32 = 256;
/// The stack pointer of x86-64, as a bit of the registers. Stacks of other processors are not read.
const STACK_POINTER: u64 = 1 << 7;
/// Header, address, process, thread.
const SAMPLE_BYTES: usize = 24;

/// A thread ran here, in user mode.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    pub pid: u32,
    pub tid: u32,
    pub address: u64,
    pub stack_pointer: u64,
    /// From the stack pointer on; empty if it was not read.
    pub stack: Vec<u8>,
}

/// What was recorded since the last reading.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sampled {
    pub places: Vec<Place>,
    /// Records that were dropped because a ring was full.
    pub lost: u64,
}

/// The samples of a process tree.
///
/// As of births and deaths, its descriptors must not be polled.
#[derive(Debug)]
pub struct TreeSamples {
    rings: Vec<Ring>,
    events: Vec<File>,
}

impl TreeSamples {
    /// CPU time for which a sample stands.
    pub const PERIOD_NS: u64 = PERIOD_NS;

    pub(super) fn new(events: Vec<File>) -> Result<Self> {
        let rings = events.iter().map(|event| Ring::map(event, RING_PAGES));
        Ok(Self {
            rings: rings.collect::<Result<_>>()?,
            events,
        })
    }

    /// Pauses the clock of the samples, or lets it go on where each thread of it stood. On all CPUs, and for all
    /// threads; what is started meanwhile is paused, too.
    pub fn pause(&self, is_paused: bool) -> Result<()> {
        let switch = |event| event::enable(event, !is_paused);
        self.events.iter().try_for_each(switch)
    }

    /// CPUs that have an event of each thread.
    pub fn cpus(&self) -> usize {
        self.events.len()
    }

    /// Reads what is new.
    pub fn take(&mut self) -> Sampled {
        let mut taken = Sampled::default();
        for ring in &mut self.rings {
            ring.take_whole(|kind, record| taken.add(kind, record));
        }
        taken
    }
}

impl Sampled {
    /// Adds a record; one that is too short for its kind is left out.
    fn add(&mut self, kind: u32, record: &[u8]) {
        match kind {
            PERF_RECORD_SAMPLE if record.len() >= SAMPLE_BYTES => self.places.push(place(record)),
            // Header, identity of the event, number.
            PERF_RECORD_LOST if record.len() >= 24 => self.lost += u64_at(record, 16),
            _ => {}
        }
    }
}

fn place(record: &[u8]) -> Place {
    let (stack_pointer, stack) = stack(&record[SAMPLE_BYTES..]).unwrap_or_default();
    Place {
        address: u64_at(record, 8),
        pid: u32_at(record, 16),
        tid: u32_at(record, 20),
        stack_pointer,
        stack: stack.to_vec(),
    }
}

/// Which registers these are (0: none), the stack pointer, the bytes that the stack may have, the stack,
/// and how many of its bytes were read.
fn stack(rest: &[u8]) -> Option<(u64, &[u8])> {
    if rest.len() < 24 || u64_at(rest, 0) == 0 {
        return None;
    }
    let room = usize::try_from(u64_at(rest, 16)).ok()?;
    let bytes = rest.get(24..24usize.checked_add(room)?)?;
    let end = rest.get(24 + room..).filter(|it| it.len() >= 8)?;
    let read = usize::try_from(u64_at(end, 0)).ok()?;
    Some((u64_at(rest, 8), &bytes[..read.min(room)]))
}

pub(super) fn open(pid: u32, cpu: i32) -> Result<File> {
    let mut sample_type = event::SAMPLE_IP | event::SAMPLE_TID;
    if cfg!(target_arch = "x86_64") {
        sample_type |= event::SAMPLE_REGISTERS | event::SAMPLE_STACK;
    }
    let event = Event {
        config: event::CPU_CLOCK,
        sample_period: PERIOD_NS,
        sample_type,
        sample_registers: STACK_POINTER,
        sample_stack_bytes: STACK_BYTES,
        flags: event::FLAG_EXCLUDE_KERNEL | event::FLAG_EXCLUDE_HYPERVISOR,
        ..Event::default()
    };
    event::open(pid, cpu, event)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(length: usize, words: &[(usize, u64)]) -> Vec<u8> {
        let mut record = vec![0; length];
        for (at, word) in words {
            record[*at..*at + 8].copy_from_slice(&word.to_le_bytes());
        }
        record
    }

    #[test]
    fn a_sample_says_which_thread_ran_where() {
        let mut taken = Sampled::default();
        let ids = 500 | 501 << 32;
        taken.add(9, &record(24, &[(8, 0x5555_1234), (16, ids)]));
        let place = Place {
            pid: 500,
            tid: 501,
            address: 0x5555_1234,
            ..Place::default()
        };
        assert_eq!(taken.places, [place]);
    }

    #[test]
    fn a_sample_has_as_much_of_the_stack_as_was_read() {
        let words = [
            (24, 2),
            (32, 0x7ffd_0000),
            (40, 16),
            (48, 0x11),
            (56, 0x22),
            (64, 8),
        ];
        let whole = record(72, &words);
        let stack = |record: &[u8]| {
            let mut taken = Sampled::default();
            taken.add(9, record);
            let place = taken.places.remove(0);
            (place.stack_pointer, place.stack)
        };
        let first = 0x11u64.to_le_bytes().to_vec();
        assert_eq!(stack(&whole), (0x7ffd_0000, first));
        for length in (24..72).step_by(8) {
            assert_eq!(stack(&whole[..length]), (0, vec![]), "{length}");
        }
        let long = record(72, &[(24, 2), (40, u64::MAX)]);
        assert_eq!(stack(&long), (0, vec![]));
    }

    #[test]
    fn records_that_are_cut_or_of_another_kind_are_left_out() {
        let whole = record(96, &[(16, 7)]);
        let mut taken = Sampled::default();
        for length in (8..24).step_by(8) {
            for kind in [2, 9] {
                taken.add(kind, &whole[..length]);
            }
        }
        taken.add(3, &whole);
        assert_eq!(taken, Sampled::default());
        taken.add(2, &whole);
        assert_eq!(taken.lost, 7);
    }

    #[test]
    fn whatever_stands_in_a_ring() {
        let mut number = 1u64;
        let mut taken = Sampled::default();
        for _ in 0..20_000 {
            let mut bytes = Vec::new();
            let words = number >> 32 & 31;
            for _ in 0..=words {
                number = number
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                // Small numbers are lengths that may be right.
                let word = if number >> 63 == 0 {
                    number >> 56
                } else {
                    number
                };
                bytes.extend(word.to_le_bytes());
            }
            taken.add(PERF_RECORD_SAMPLE, &bytes);
        }
        assert!(taken.places.iter().any(|it| !it.stack.is_empty()));
    }
}
