//! What the goroutines of a program are doing, from its memory. Goroutines run on any thread, so threads
//! say little of them. The runtime keeps a list of all, `runtime.allgs`, each with its state and with the
//! reason for which it waits. Nothing is stopped: a goroutine may change while it is read.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::elf_sections::{ElfSections, number};
use crate::proc_fs::ProcFs;

/// Most goroutines that a sample reads.
const GOROUTINES_MAX: usize = 256;
/// Bytes of a goroutine that hold its state.
const GOROUTINE_BYTES: usize = 320;
/// Where the state may stand in it; it was at 144 to 160 in versions 1.10 to 1.26.
const STATUS_AT: std::ops::RangeInclusive<usize> = 96..=240;
/// From the state on: the number of the goroutine, and the reason of its wait.
const NUMBER_AFTER: usize = 8;
const REASON_AFTER: usize = 32;
/// A runtime that has started has its main goroutine, and those that collect.
const GOROUTINES_MIN: usize = 3;
/// Longest reason, most of them.
const REASON_BYTES_MAX: u64 = 80;
const REASONS_MAX: u64 = 128;

/// A program has one of these if it is written in Go.
const GO_SECTIONS: [&str; 2] = [".go.buildinfo", ".gopclntab"];
const SYMBOLS: [&str; 4] = [
    "runtime.allgs",
    "runtime.gcBlackenEnabled",
    "runtime.waitReasonStrings",
    "runtime.gomaxprocs",
];

const RUNNABLE: u32 = 1;
const RUNNING: u32 = 2;
const SYSCALL: u32 = 3;
const WAITING: u32 = 4;
const DEAD: u32 = 6;
const STATUS_MAX: u32 = 11;
/// Added to the state while the collector scans the stack.
const SCAN: u32 = 0x1000;

/// What goroutines wait for at a lock, by the runtime's words for the reason.
pub const LOCK_REASONS: [&str; 4] = [
    "sync.Mutex.Lock",
    "sync.RWMutex.Lock",
    "sync.RWMutex.RLock",
    "semacquire",
];
/// Where a goroutine keeps the bounds of its stack, and its stack pointer and instruction while it waits.
const STACK_AT: usize = 0;
const CONTEXT_AT: usize = 56;

/// One reading of all goroutines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Goroutines {
    /// Whether the collector marks.
    pub is_collecting: bool,
    /// Those that run or could run, the collector's left out.
    pub running: u64,
    pub in_calls: u64,
    /// Those that wait, by the runtime's words for the reason.
    pub waiting: BTreeMap<String, u64>,
    /// Those of them that wait at a lock.
    pub parked: Vec<Parked>,
    /// How many may run at once (`GOMAXPROCS`), where that is known.
    pub at_once: Option<u32>,
}

/// A goroutine that waits at a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parked {
    /// As the runtime numbers it.
    pub number: u64,
    /// One of [`LOCK_REASONS`].
    pub reason: &'static str,
    /// Where the runtime keeps its instruction, after its stack pointer.
    pub context: u64,
    pub stack_pointer: u64,
    pub instruction: u64,
    /// The end of its stack.
    pub stack_end: u64,
}

impl Parked {
    /// Bytes of its stack pointer and its instruction.
    pub const CONTEXT_BYTES: usize = 16;

    /// Whether these are them still.
    pub fn is_at(&self, context: &[u8]) -> bool {
        let word = |at| number(context, at, 8);
        word(0) == Some(self.stack_pointer) && word(8) == Some(self.instruction)
    }
}

/// A Go program whose goroutines can be read.
#[derive(Debug)]
pub struct GoProgram {
    symbols: Symbols,
    runtime: Option<Runtime>,
    status_at: Option<usize>,
}

/// Its runtime, in the memory of a process.
#[derive(Debug)]
struct Runtime {
    memory: File,
    all: u64,
    collecting: u64,
    at_once: Option<u64>,
    reasons: Vec<String>,
}

/// Where the runtime keeps what is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Symbols {
    all: u64,
    collecting: u64,
    /// 0 where a version has none of this name.
    at_once: u64,
    reasons: u64,
    reasons_bytes: u64,
    /// The program is loaded anywhere, and addresses are relative to that.
    is_relative: bool,
}

impl GoProgram {
    /// A program, if it is written in Go and its goroutines can be read; or the reason why they cannot.
    pub fn open(proc_fs: &ProcFs, pid: u32) -> Option<std::result::Result<Self, String>> {
        let found = Self::find(proc_fs, pid)?;
        Some(found.and_then(|mut program| program.attach(proc_fs, pid).map(|()| program)))
    }

    /// A program, if it is written in Go: with its symbols, or with the reason why it cannot be read. Nothing is
    /// read of its memory.
    pub fn find(proc_fs: &ProcFs, pid: u32) -> Option<std::result::Result<Self, String>> {
        let program = proc_fs.open_program(pid).ok()?;
        let symbols = symbols_of(|at, length| read(&program, at, length))?;
        Some(symbols.map(|symbols| Self {
            symbols,
            runtime: None,
            status_at: None,
        }))
    }

    /// Finds the runtime in the memory of the process, where that was not done; or says why it cannot be read.
    pub fn attach(&mut self, proc_fs: &ProcFs, pid: u32) -> std::result::Result<(), String> {
        if self.runtime.is_none() {
            self.runtime = Some(Runtime::of(proc_fs, pid, self.symbols)?);
        }
        Ok(())
    }

    /// Reads all goroutines; none while the runtime starts or ends, and before it was attached to.
    pub fn sample(&mut self) -> Option<Goroutines> {
        let Runtime {
            memory,
            all,
            collecting,
            at_once,
            reasons,
        } = self.runtime.as_ref()?;
        let is_collecting = number(&read(memory, *collecting, 4)?, 0, 4)? != 0;
        let header = read(memory, *all, 16)?;
        let count = (number(&header, 8, 8)? as usize).min(GOROUTINES_MAX);
        let pointers = read(memory, number(&header, 0, 8)?, 8 * count)?;
        let places = (0..count).filter_map(|index| number(&pointers, 8 * index, 8));
        let (places, found): (Vec<u64>, Vec<Vec<u8>>) = places
            .filter_map(|place| Some((place, read(memory, place, GOROUTINE_BYTES)?)))
            .unzip();
        let status_at = match self.status_at {
            Some(at) => at,
            None => {
                let at = find_status(&found, reasons.len())?;
                *self.status_at.insert(at)
            }
        };
        let mut goroutines = counted(&found, status_at, reasons);
        goroutines.is_collecting = is_collecting;
        let at_once = at_once.and_then(|at| number(&read(memory, at, 4)?, 0, 4));
        goroutines.at_once = at_once.map(|it| it as u32).filter(|it| *it > 0);
        let each = places.iter().zip(&found);
        goroutines.parked = each
            .filter_map(|(place, bytes)| parked(*place, bytes, status_at, reasons))
            .collect();
        Some(goroutines)
    }
}

impl Runtime {
    fn of(proc_fs: &ProcFs, pid: u32, symbols: Symbols) -> std::result::Result<Self, String> {
        let base = match symbols.is_relative {
            true => proc_fs
                .program_base(pid)
                .ok_or("the place where it is loaded is not known")?,
            false => 0,
        };
        let memory = proc_fs
            .open_memory(pid)
            .map_err(|error| error.to_string())?;
        let reasons = reasons(&memory, base + symbols.reasons, symbols.reasons_bytes)
            .ok_or("its reasons for waits could not be read")?;
        Ok(Self {
            memory,
            all: base + symbols.all,
            collecting: base + symbols.collecting,
            at_once: (symbols.at_once > 0).then_some(base + symbols.at_once),
            reasons,
        })
    }
}

/// Counts goroutines by what they do.
fn counted(found: &[Vec<u8>], status_at: usize, reasons: &[String]) -> Goroutines {
    let mut counted = Goroutines::default();
    for goroutine in found {
        let Some(status) = number(goroutine, status_at, 4) else {
            continue;
        };
        match status as u32 & !SCAN {
            RUNNABLE | RUNNING => counted.running += 1,
            SYSCALL => counted.in_calls += 1,
            WAITING => {
                let reason = number(goroutine, status_at + REASON_AFTER, 1).unwrap_or(0);
                let named = reasons.get(reason as usize).filter(|name| !name.is_empty());
                let name = named.map_or("unknown", String::as_str);
                *counted.waiting.entry(name.into()).or_default() += 1;
            }
            _ => {}
        }
    }
    counted
}

/// A goroutine, if it waits at a lock.
fn parked(place: u64, bytes: &[u8], status_at: usize, reasons: &[String]) -> Option<Parked> {
    let word = |at| number(bytes, at, 8);
    if number(bytes, status_at, 4)? as u32 != WAITING {
        return None;
    }
    let reason = number(bytes, status_at + REASON_AFTER, 1)? as usize;
    let name = reasons.get(reason)?;
    let reason = LOCK_REASONS.into_iter().find(|it| it == name)?;
    let (begin, end) = (word(STACK_AT)?, word(STACK_AT + 8)?);
    let stack_pointer = word(CONTEXT_AT)?;
    // Else a version keeps it elsewhere.
    (begin..end).contains(&stack_pointer).then_some(Parked {
        number: word(status_at + NUMBER_AFTER)?,
        reason,
        context: place.checked_add(CONTEXT_AT as u64)?,
        stack_pointer,
        instruction: word(CONTEXT_AT + 8)?,
        stack_end: end,
    })
}

/// Where the state stands in goroutines: it is a state in all of them, and numbers follow, all different,
/// of which one is that of the main goroutine, 1. Of several such places, that with the most numbers: one of
/// the others may hold a 1 by chance. None while there are so few goroutines that all may be chance.
fn find_status(found: &[Vec<u8>], reasons: usize) -> Option<usize> {
    let numbers_at = |at: usize| {
        let mut numbers = HashSet::new();
        let fits = found.iter().all(|goroutine| {
            let (Some(status), Some(lock), Some(own), Some(reason)) = (
                number(goroutine, at, 4),
                number(goroutine, at + 4, 4),
                number(goroutine, at + NUMBER_AFTER, 8),
                number(goroutine, at + REASON_AFTER, 1),
            ) else {
                return false;
            };
            let status = status as u32 & !SCAN;
            let is_new = status == DEAD || own == 0 || numbers.insert(own);
            status <= STATUS_MAX && lock <= 1 && is_new && (reason as usize) < reasons
        });
        (fits && numbers.contains(&1)).then_some(numbers.len())
    };
    let places = STATUS_AT.step_by(8);
    let fitting = places.filter_map(|at| Some((numbers_at(at)?, at)));
    let (numbers, at) = fitting.max_by_key(|(numbers, at)| (*numbers, std::cmp::Reverse(*at)))?;
    (numbers >= GOROUTINES_MIN).then_some(at)
}

/// The runtime's words for the reasons of waits: an array of strings.
fn reasons(memory: &File, at: u64, bytes: u64) -> Option<Vec<String>> {
    let count = (bytes / 16).min(REASONS_MAX);
    let headers = read(memory, at, 16 * count as usize)?;
    let one = |index: u64| {
        let pointer = number(&headers, 16 * index as usize, 8)?;
        let length = number(&headers, 16 * index as usize + 8, 8)?.min(REASON_BYTES_MAX);
        let text = read(memory, pointer, length as usize)?;
        String::from_utf8(text).ok()
    };
    (count > 0).then(|| (0..count).map(|it| one(it).unwrap_or_default()).collect())
}

fn read(file: &File, at: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, at).ok()?;
    Some(bytes)
}

/// The symbols in a file of ELF's 64 bits; none if it is no Go program.
fn symbols_of(
    read: impl Fn(u64, usize) -> Option<Vec<u8>>,
) -> Option<std::result::Result<Symbols, String>> {
    let sections = ElfSections::open(read)?;
    if !GO_SECTIONS.iter().any(|it| sections.has(it)) {
        return None;
    }
    if !sections.has(".symtab") {
        return Some(Err("the Go program has no symbols (it was stripped)".into()));
    }
    let [all, collecting, reasons, at_once] =
        sections.symbols(".symtab", &SYMBOLS)?.try_into().ok()?;
    let found = Symbols {
        all: all.address,
        collecting: collecting.address,
        at_once: at_once.address,
        reasons: reasons.address,
        reasons_bytes: reasons.bytes,
        is_relative: sections.is_relative(),
    };
    let known = found.all > 0 && found.collecting > 0 && found.reasons > 0;
    Some(match known {
        true => Ok(found),
        false => Err("the Go program's runtime is not known".into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goroutine(number: u64, status: u32, reason: u8) -> Vec<u8> {
        let mut bytes = vec![0xa5; GOROUTINE_BYTES];
        bytes[152..156].copy_from_slice(&status.to_le_bytes());
        bytes[156..160].fill(0);
        bytes[160..168].copy_from_slice(&number.to_le_bytes());
        bytes[184] = reason;
        bytes
    }

    #[test]
    fn finds_the_state_in_goroutines_and_counts_them() {
        let found = [
            goroutine(1, WAITING, 2),
            goroutine(2, RUNNING, 0),
            goroutine(3, RUNNABLE | SCAN, 0),
            goroutine(17, WAITING, 1),
            goroutine(18, WAITING, 1),
            goroutine(17, DEAD, 0),
            goroutine(19, SYSCALL, 0),
        ];
        let reasons = ["", "sync.Mutex.Lock", "chan receive"].map(String::from);
        assert_eq!(find_status(&found, reasons.len()), Some(152));
        let counted = counted(&found, 152, &reasons);
        assert_eq!((counted.running, counted.in_calls), (2, 1));
        let waiting: Vec<_> = counted.waiting.into_iter().collect();
        let expected = [
            (String::from("chan receive"), 1),
            (String::from("sync.Mutex.Lock"), 2),
        ];
        assert_eq!(waiting, expected);
        assert_eq!(
            find_status(&found, 2),
            None,
            "a reason that there is none of"
        );
        assert_eq!(find_status(&found[1..], 3), None, "no main goroutine");
    }

    #[test]
    fn no_place_is_taken_that_fits_by_chance_while_the_runtime_starts() {
        // The main goroutine has a 1 elsewhere, and the others nothing there.
        let decoy = |number| {
            let mut bytes = goroutine(number, WAITING, 1);
            bytes[104..152].fill(0);
            bytes[109] = u8::from(number == 1);
            bytes
        };
        let all: Vec<_> = (1..=5).map(decoy).collect();
        assert_eq!(find_status(&all[..1], 2), None);
        assert_eq!(find_status(&all[..2], 2), None);
        for count in 3..=5 {
            assert_eq!(find_status(&all[..count], 2), Some(152));
        }
    }

    #[test]
    fn a_goroutine_that_waits_at_a_lock_says_where_its_stack_is() {
        let reasons = ["", "sync.Mutex.Lock", "chan receive"].map(String::from);
        let with_stack = |reason, stack_pointer: u64| {
            let mut bytes = goroutine(7, WAITING, reason);
            for (at, word) in [
                (0, 0x1000),
                (8, 0x2000),
                (56, stack_pointer),
                (64, 0x40_1234),
            ] {
                bytes[at..at + 8].copy_from_slice(&u64::to_le_bytes(word));
            }
            parked(0xc000_0000, &bytes, 152, &reasons)
        };
        let found = with_stack(1, 0x1f00).unwrap();
        assert_eq!((found.number, found.reason), (7, "sync.Mutex.Lock"));
        assert_eq!((found.stack_pointer, found.stack_end), (0x1f00, 0x2000));
        assert_eq!((found.context, found.instruction), (0xc000_0038, 0x40_1234));
        let mut context = [0; Parked::CONTEXT_BYTES];
        context[..8].copy_from_slice(&0x1f00_u64.to_le_bytes());
        context[8..].copy_from_slice(&0x40_1234_u64.to_le_bytes());
        assert!(found.is_at(&context));
        context[8] ^= 1;
        assert!(!found.is_at(&context));
        assert_eq!(with_stack(2, 0x1f00), None, "a channel is no lock");
        assert_eq!(with_stack(1, 0x2f00), None, "that is not its stack");
    }

    /// A file with the sections that are read.
    fn program(sections: &[(&str, Vec<u8>, u32)]) -> Vec<u8> {
        let mut names = vec![0];
        let mut headers = Vec::new();
        let mut bytes = vec![0; 64];
        let header = |name: usize, at: usize, length: usize, link: u32| {
            let mut header = vec![0; 64];
            header[..4].copy_from_slice(&(name as u32).to_le_bytes());
            header[24..32].copy_from_slice(&(at as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(length as u64).to_le_bytes());
            header[40..44].copy_from_slice(&link.to_le_bytes());
            header
        };
        for (name, content, link) in sections {
            headers.push(header(names.len(), bytes.len(), content.len(), *link));
            names.extend(name.bytes().chain([0]));
            bytes.extend(content);
        }
        headers.push(header(0, bytes.len(), names.len(), 0));
        bytes.extend(&names);
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[16] = 2;
        let at = bytes.len() as u64;
        bytes[40..48].copy_from_slice(&at.to_le_bytes());
        bytes[58] = 64;
        bytes[60] = headers.len() as u8;
        bytes[62] = headers.len() as u8 - 1;
        bytes.extend(headers.concat());
        bytes
    }

    fn symbols(bytes: &[u8]) -> Option<std::result::Result<Symbols, String>> {
        symbols_of(|at, length| Some(bytes.get(at as usize..at as usize + length)?.to_vec()))
    }

    /// The sections of a Go program with its symbols.
    fn go_sections() -> [(&'static str, Vec<u8>, u32); 3] {
        let mut texts = vec![0];
        let mut table = Vec::new();
        for (index, name) in SYMBOLS.iter().enumerate() {
            let mut symbol = vec![0; 24];
            symbol[0] = texts.len() as u8;
            symbol[8] = 0x40 + index as u8;
            symbol[16] = 0x30;
            texts.extend(name.bytes().chain([0]));
            table.extend(symbol);
        }
        [
            (".go.buildinfo", vec![1], 0),
            (".symtab", table, 2),
            (".strtab", texts, 0),
        ]
    }

    #[test]
    fn nothing_is_read_of_the_memory_before_it_is_asked_for() {
        let root = std::env::temp_dir().join(format!("concurve-go-{}", std::process::id()));
        std::fs::create_dir_all(root.join("7")).unwrap();
        std::fs::write(root.join("7/exe"), program(&go_sections())).unwrap();
        // A process without a memory.
        let proc_fs = ProcFs::new(&root);
        let mut found = GoProgram::find(&proc_fs, 7).unwrap().unwrap();
        assert_eq!(found.sample(), None);
        let refusal = found.attach(&proc_fs, 7).unwrap_err();
        assert!(refusal.contains("7/mem"), "{refusal}");
        assert!(GoProgram::open(&proc_fs, 7).unwrap().is_err());
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn finds_the_symbols_of_a_go_program() {
        let sections = go_sections();
        let whole = program(&sections);
        let [go, ..] = sections;
        let found = symbols(&whole).unwrap().unwrap();
        assert_eq!((found.all, found.collecting), (0x40, 0x41));
        assert_eq!((found.reasons, found.reasons_bytes), (0x42, 0x30));
        assert_eq!(found.at_once, 0x43);
        assert!(!found.is_relative);
        let stripped = symbols(&program(&[go])).unwrap();
        assert!(stripped.unwrap_err().contains("stripped"));
        let other = program(&[(".text", vec![1], 0)]);
        assert_eq!(symbols(&other), None);
        for length in 0..whole.len() {
            // Cut files end in nothing, or in a reason, and never in a panic.
            let _ = symbols(&whole[..length]);
        }
        assert_eq!(symbols(b"#!/bin/sh\n"), None);
    }
}
