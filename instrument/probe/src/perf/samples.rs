//! Where in their programs the threads of a tree run: samples of the instruction pointer in user mode.
//!
//! A clock of the kernel that runs while a thread is on a CPU takes them, so any user may ask for it and no
//! counter of the hardware is needed. Between them stand the records of what each process maps as program
//! text: by an exec, and by libraries that are loaded later.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::event::{self, Event};
use super::ring::{Ring, u32_at, u64_at};
use crate::Result;

const PERF_RECORD_LOST: u32 = 2;
const PERF_RECORD_SAMPLE: u32 = 9;
const PERF_RECORD_MMAP2: u32 = 10;
/// Where the path begins in the record of a mapping.
const PATH_AT: usize = 72;
/// Capacity for some 300 mappings between two readings, on each CPU.
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

/// A process has this program text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextMapping {
    pub pid: u32,
    pub start: u64,
    pub bytes: u64,
    /// Where in the file it begins.
    pub offset: u64,
    /// As the process names the file; of memory without a file, a name such as `//anon` or `[vdso]`.
    pub path: PathBuf,
}

/// What was recorded since the last reading.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sampled {
    pub mappings: Vec<TextMapping>,
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
    /// Kept open, since closing them ends the recording.
    _events: Vec<File>,
}

impl TreeSamples {
    /// CPU time for which a sample stands.
    pub const PERIOD_NS: u64 = PERIOD_NS;

    pub(super) fn new(events: Vec<File>) -> Result<Self> {
        let rings = events.iter().map(|event| Ring::map(event, RING_PAGES));
        Ok(Self {
            rings: rings.collect::<Result<_>>()?,
            _events: events,
        })
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
            PERF_RECORD_MMAP2 if record.len() > PATH_AT => self.mappings.push(mapping(record)),
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

/// Header, process, thread, address, length, offset, the file's device and number, permissions and flags,
/// path.
fn mapping(record: &[u8]) -> TextMapping {
    let path = &record[PATH_AT..];
    let end = path.iter().position(|byte| *byte == 0);
    TextMapping {
        pid: u32_at(record, 8),
        start: u64_at(record, 16),
        bytes: u64_at(record, 24),
        offset: u64_at(record, 32),
        path: PathBuf::from(OsStr::from_bytes(&path[..end.unwrap_or(path.len())])),
    }
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
        flags: event::FLAG_EXCLUDE_KERNEL
            | event::FLAG_EXCLUDE_HYPERVISOR
            | event::FLAG_MMAP
            | event::FLAG_MMAP2,
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
    fn a_mapping_has_its_place_and_its_path() {
        let words = [
            (8, 500 | 500 << 32),
            (16, 0x7f00_0000),
            (24, 0x1000),
            (32, 0x2000),
        ];
        let mut bytes = record(96, &words);
        bytes[72..84].copy_from_slice(b"/lib/libm.so");
        let mut taken = Sampled::default();
        taken.add(10, &bytes);
        let expected = TextMapping {
            pid: 500,
            start: 0x7f00_0000,
            bytes: 0x1000,
            offset: 0x2000,
            path: "/lib/libm.so".into(),
        };
        assert_eq!(taken.mappings, [expected]);
        // Without its end, a path is what is there.
        bytes[84..].fill(b'x');
        taken.add(10, &bytes);
        assert_eq!(taken.mappings[1].path.as_os_str().len(), 24);
    }

    #[test]
    fn records_that_are_cut_or_of_another_kind_are_left_out() {
        let whole = record(96, &[(16, 7)]);
        let mut taken = Sampled::default();
        for length in (8..24).step_by(8) {
            for kind in [2, 9, 10] {
                taken.add(kind, &whole[..length]);
            }
        }
        taken.add(10, &whole[..72]);
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
            for kind in [PERF_RECORD_SAMPLE, PERF_RECORD_MMAP2] {
                taken.add(kind, &bytes);
            }
        }
        assert!(taken.places.iter().any(|it| !it.stack.is_empty()));
        assert!(!taken.mappings.is_empty());
    }
}
