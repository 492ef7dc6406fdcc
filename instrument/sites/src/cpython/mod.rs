//! Which functions of Python a thread is in, from the memory of its process. Nothing is stopped: a thread that
//! is blocked leaves its frames as they are, and who samples it knows whether it ran meanwhile.
//!
//! The interpreter keeps a list of its threads, each with its innermost frame, and each frame with its caller
//! and with its code (`layout.rs` says where). What is read is only trusted where it says itself that it is right: a
//! thread has the number that the kernel gives it, and code is an object whose type is that of code.

mod code;
mod layout;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use concurve_clock as clock;
use concurve_probe::elf_sections::{ElfSections, ElfSymbol, number};
use concurve_probe::proc_fs::ProcFs;

pub use code::Code;
use layout::{Layout, TABLE_BYTES};

/// The memory of a process.
pub trait Memory {
    /// So many bytes from an address on; none if they could not be read.
    fn read(&self, at: u64, length: usize) -> Option<Vec<u8>>;

    /// The same of several addresses. Each reading of another process is a system call: where it can, it reads
    /// all of them in one.
    fn read_each(&self, places: &[u64], length: usize) -> Vec<Option<Vec<u8>>>;
}

/// Most frames of a thread, threads of an interpreter, and interpreters of a process that are looked at.
const FRAMES_MAX: usize = 16;
const THREADS_MAX: usize = 4096;
const INTERPRETERS_MAX: usize = 16;
/// Most code objects that are kept.
const CODES_MAX: usize = 8192;
const PAGE_BYTES: u64 = 4096;
/// Larger tables of lines are not read.
const LINES_MAX: usize = 1 << 20;
/// So often at most are the threads listed again for one that was not among them.
const LISTED_AGAIN_NS: u64 = 50_000_000;
/// Frames of these owners, from this one on, stand for the interpreter itself.
const FIRST_OWNER_OF_NO_CODE: u8 = 3;
/// In any object: its type. In a string and in bytes: its length. In bytes: what they are.
const TYPE_AT: usize = 8;
const LENGTH_AT: usize = 16;
const BYTES_AT: usize = 32;
/// A reference may have marks in its lowest bits.
const MARKS: u64 = 7;
const SYMBOLS: [&str; 3] = ["_PyRuntime", "PyCode_Type", "Py_Version"];

/// Where a file that has an interpreter keeps what is read, by the file's own addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbols {
    runtime: ElfSymbol,
    code_type: u64,
    /// 0 before 3.11.
    version: u64,
    /// The file may be loaded anywhere.
    pub is_relative: bool,
}

impl Symbols {
    /// Of a program or a library; none if it has no interpreter.
    pub fn of(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let sections = ElfSections::open(|at, length| {
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, at).ok()?;
            Some(bytes)
        })?;
        let found = sections.symbols(".dynsym", &SYMBOLS)?;
        let [runtime, code_type, version] = found.try_into().ok()?;
        let is_there = |it: ElfSymbol| it.address != 0;
        (is_there(runtime) && is_there(code_type)).then_some(Self {
            runtime,
            code_type: code_type.address,
            version: version.address,
            is_relative: sections.is_relative(),
        })
    }
}

/// A function of Python that a thread is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonFrame {
    pub code: Arc<Code>,
    /// Bytes of instructions before the one that it is at.
    pub offset: u32,
}

/// The interpreter of a process.
#[derive(Debug)]
pub struct Interpreter {
    layout: Layout,
    runtime: Range<u64>,
    code_type: u64,
    /// Where the state of each thread stands.
    threads: HashMap<u32, u64>,
    /// What the state of the only thread says instead of its number.
    parent: Option<u32>,
    /// Those that no interpreter knows.
    strangers: HashSet<u32>,
    listed_ns: u64,
    codes: HashMap<u64, Known>,
}

/// A code object, with what tells whether another one stands in its place.
#[derive(Debug)]
struct Known {
    names: [u64; 4],
    code: Arc<Code>,
}

impl Interpreter {
    /// That of a process, by the symbols of its file and by how much addresses are greater than those; or why
    /// its frames are not known.
    pub fn open(symbols: Symbols, moved_by: u64, memory: &dyn Memory) -> Result<Self, String> {
        if symbols.version == 0 {
            return Err(layout::unknown("before 3.11"));
        }
        let place = |address: u64| address.wrapping_add(moved_by);
        let version = memory
            .read(place(symbols.version), 8)
            .ok_or("its version could not be read")?;
        let begin = place(symbols.runtime.address);
        let table = memory
            .read(begin, TABLE_BYTES)
            .ok_or("its state could not be read")?;
        Ok(Self {
            layout: layout::layout_of(number(&version, 0, 4).unwrap_or(0) as u32, &table)?,
            runtime: begin..begin.saturating_add(symbols.runtime.bytes),
            code_type: place(symbols.code_type),
            threads: HashMap::new(),
            parent: None,
            strangers: HashSet::new(),
            listed_ns: 0,
            codes: HashMap::new(),
        })
    }

    /// Whether a futex word is that of the global interpreter lock: no other lock at which threads sleep
    /// is in the state of the runtime.
    pub fn is_global_lock(&self, word: u64) -> bool {
        self.runtime.contains(&word)
    }

    /// The functions that a thread of the process is in, the innermost one first. Empty for a thread that runs no
    /// Python.
    pub fn frames(
        &mut self,
        proc_fs: &ProcFs,
        pid: u32,
        tid: u32,
        memory: &dyn Memory,
    ) -> Vec<PythonFrame> {
        let Some(mut at) = self.innermost(proc_fs, pid, tid, memory) else {
            return Vec::new();
        };
        let near = Near::default();
        // Where the code of each frame stands, and its instruction.
        let mut found = Vec::new();
        for _ in 0..FRAMES_MAX {
            if at == 0 {
                break;
            }
            let Some(bytes) = near.read(at, self.frame_bytes(), memory) else {
                break;
            };
            let word = |at: usize| number(&bytes, at, 8).unwrap_or(0);
            let owner = self.layout.owner.and_then(|at| bytes.get(at).copied());
            if owner.is_none_or(|it| it < FIRST_OWNER_OF_NO_CODE) {
                let address = word(self.layout.code) & !MARKS;
                found.push((address, word(self.layout.instruction)));
            }
            at = word(self.layout.caller);
        }
        let places: Vec<u64> = found.iter().map(|(address, _)| *address).collect();
        let codes = memory.read_each(&places, self.code_bytes());
        let frame = |((address, instruction), bytes): ((u64, u64), Option<Vec<u8>>)| {
            let code = self.code(address, &bytes?, memory)?;
            let instructions = address.wrapping_add(self.layout.instructions as u64);
            let offset = instruction.wrapping_sub(instructions);
            // A frame that begins is before its first instruction.
            let offset = u32::try_from(offset as i64 & !1).unwrap_or(0);
            Some(PythonFrame { code, offset })
        };
        found.into_iter().zip(codes).filter_map(frame).collect()
    }

    fn frame_bytes(&self) -> usize {
        let layout = &self.layout;
        let words = [layout.caller, layout.code, layout.instruction];
        words
            .into_iter()
            .max()
            .unwrap_or(0)
            .max(layout.owner.unwrap_or(0))
            + 8
    }

    /// What is read of a code object.
    fn code_bytes(&self) -> usize {
        let layout = &self.layout;
        let words = [
            layout.filename,
            layout.qualified_name,
            layout.line_table,
            layout.first_line,
        ];
        words.into_iter().max().unwrap_or(0) + 8
    }

    /// Where the innermost frame of a thread stands.
    fn innermost(
        &mut self,
        proc_fs: &ProcFs,
        pid: u32,
        tid: u32,
        memory: &dyn Memory,
    ) -> Option<u64> {
        if let Some(state) = self.threads.get(&tid)
            && let Some(frame) = self.frame_of(*state, tid, memory)
        {
            return Some(frame);
        }
        let now = clock::monotonic_ns();
        let is_soon = now < self.listed_ns.saturating_add(LISTED_AGAIN_NS);
        if !is_soon {
            self.strangers.clear();
        } else if self.strangers.contains(&tid) {
            return None;
        }
        self.listed_ns = now;
        self.list(memory);
        if tid == pid {
            self.adopt(proc_fs, pid);
        }
        let state = self.threads.get(&tid).copied();
        let frame = state.and_then(|state| self.frame_of(state, tid, memory));
        if frame.is_none() {
            self.strangers.insert(tid);
        }
        frame
    }

    /// The innermost frame by the state of a thread, if it is that of this thread.
    fn frame_of(&self, state: u64, tid: u32, memory: &dyn Memory) -> Option<u64> {
        let layout = &self.layout;
        let bytes = memory.read(state, layout.frame.max(layout.native_thread) + 8)?;
        let native = number(&bytes, layout.native_thread, 8)?;
        if native != u64::from(self.parent.unwrap_or(tid)) {
            return None;
        }
        let frame = number(&bytes, layout.frame, 8)?;
        match layout.frame_behind {
            None => Some(frame),
            Some(behind) => number(&memory.read(frame.checked_add(behind as u64)?, 8)?, 0, 8),
        }
    }

    /// Lists the threads of all interpreters anew.
    fn list(&mut self, memory: &dyn Memory) {
        self.parent = None;
        self.threads.clear();
        let layout = &self.layout;
        let word = |at: u64, offset: usize| {
            let bytes = memory.read(at.checked_add(offset as u64)?, 8)?;
            number(&bytes, 0, 8).filter(|it| *it != 0)
        };
        let mut interpreter = word(self.runtime.start, layout.interpreters);
        for _ in 0..INTERPRETERS_MAX {
            let Some(at) = interpreter else { break };
            let mut thread = word(at, layout.threads);
            for _ in 0..THREADS_MAX {
                let Some(state) = thread else { break };
                let native = word(state, layout.native_thread);
                let Some(tid) = native.and_then(|it| u32::try_from(it).ok()) else {
                    break;
                };
                // The list changes while it is read, and may lead back.
                if self.threads.insert(tid, state).is_some() {
                    break;
                }
                thread = word(state, layout.next_thread);
            }
            interpreter = word(at, layout.next_interpreter);
        }
    }

    /// A process that was forked has one thread, for which older versions keep the number of its parent.
    fn adopt(&mut self, proc_fs: &ProcFs, pid: u32) {
        if let [(native, state)] = self.threads.iter().collect::<Vec<_>>()[..]
            && *native != pid
            && proc_fs.thread_stat(pid, *native).is_err()
        {
            self.parent = Some(*native);
            self.threads = HashMap::from([(pid, *state)]);
        }
    }

    /// The code object at an address, by what stands there.
    fn code(&mut self, address: u64, bytes: &[u8], memory: &dyn Memory) -> Option<Arc<Code>> {
        let layout = &self.layout;
        if number(bytes, TYPE_AT, 8)? != self.code_type {
            return None;
        }
        let first_line = number(bytes, layout.first_line, 4)?;
        let names = [
            number(bytes, layout.filename, 8)?,
            number(bytes, layout.qualified_name, 8)?,
            number(bytes, layout.line_table, 8)?,
            first_line,
        ];
        if let Some(known) = self.codes.get(&address)
            && known.names == names
        {
            return Some(known.code.clone());
        }
        let code = Arc::new(Code {
            file: self.text(names[0], memory)?,
            function: self.text(names[1], memory)?,
            lines: bytes_of(names[2], memory).unwrap_or_default(),
            first_line: u32::try_from(first_line).unwrap_or(0),
        });
        if self.codes.len() == CODES_MAX {
            self.codes.clear();
        }
        let known = Known {
            names,
            code: code.clone(),
        };
        self.codes.insert(address, known);
        Some(code)
    }

    fn text(&self, address: u64, memory: &dyn Memory) -> Option<String> {
        let header = memory.read(address, LENGTH_AT + 8)?;
        let length = number(&header, LENGTH_AT, 8)? as usize;
        if length > code::NAME_MAX {
            return None;
        }
        let place = |at: usize| address.checked_add(at as u64);
        let ascii = memory.read(place(self.layout.ascii)?, length + 1)?;
        if let Some(found) = code::text(length, &ascii, &[]) {
            return Some(found);
        }
        // Four bytes each at most: what is behind a string of narrower characters may not be mapped.
        let at = place(self.layout.characters)?;
        let mut widths = [4, 2, 1].into_iter();
        widths.find_map(|width| code::text(length, &[], &memory.read(at, width * (length + 1))?))
    }
}

/// The frame of a caller mostly stands a little before that of the function: all of a page are read at once.
#[derive(Default)]
struct Near(RefCell<(u64, Vec<u8>)>);

impl Near {
    fn read(&self, at: u64, length: usize, memory: &dyn Memory) -> Option<Vec<u8>> {
        let mut known = self.0.borrow_mut();
        let inside = |known: &(u64, Vec<u8>)| {
            let from = usize::try_from(at.checked_sub(known.0)?).ok()?;
            Some(known.1.get(from..from.checked_add(length)?)?.to_vec())
        };
        if let Some(found) = inside(&known) {
            return Some(found);
        }
        // The page before may not be mapped.
        let begin = at & !(PAGE_BYTES - 1);
        let bytes = memory.read(begin, (at - begin) as usize + length)?;
        *known = (begin, bytes);
        inside(&known)
    }
}

fn bytes_of(address: u64, memory: &dyn Memory) -> Option<Vec<u8>> {
    let length = number(&memory.read(address, LENGTH_AT + 8)?, LENGTH_AT, 8)? as usize;
    if length > LINES_MAX {
        return None;
    }
    memory.read(address.checked_add(BYTES_AT as u64)?, length)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const BASE: u64 = 0x10_0000;
    const RUNTIME: u64 = 0x1000;
    const CODE_TYPE: u64 = 0x3000;
    const VERSION: u64 = 0x3100;
    const INTERPRETER: u64 = 0x4000;
    const THREAD: u64 = 0x5000;
    const TID: u32 = 77;
    const SYMBOLS: Symbols = Symbols {
        runtime: ElfSymbol {
            address: RUNTIME,
            bytes: 0x1000,
        },
        code_type: CODE_TYPE,
        version: VERSION,
        is_relative: true,
    };

    /// The memory of a process with an interpreter of version 3.12, whose thread is in two functions.
    fn memory() -> Vec<u8> {
        let mut bytes = vec![0; 0x10000];
        let mut put = |at: u64, value: u64| {
            bytes[at as usize..at as usize + 8].copy_from_slice(&value.to_le_bytes());
        };
        let layout = layout::layout_of(0x030c_0000, &[]).unwrap();
        let field = |at: u64, offset: usize| at + offset as u64;
        put(VERSION, 0x030c_01f0);
        put(field(RUNTIME, layout.interpreters), BASE + INTERPRETER);
        put(field(INTERPRETER, layout.threads), BASE + THREAD + 0x800);
        // The newest thread comes first.
        put(field(THREAD + 0x800, layout.next_thread), BASE + THREAD);
        put(field(THREAD + 0x800, layout.native_thread), 78);
        put(field(THREAD, layout.native_thread), TID.into());
        put(field(THREAD, layout.frame), BASE + THREAD + 0x200);
        // A frame stands behind that of its caller.
        let frames = [0x6200, 0x6100, 0x6000];
        put(THREAD + 0x200, BASE + frames[0]);
        for (index, (frame, code)) in frames.into_iter().zip([0x7000, 0x7800, 0x8000]).enumerate() {
            let next = frames.get(index + 1).map_or(0, |it| BASE + it);
            put(field(frame, layout.caller), next);
            put(field(frame, layout.code), BASE + code);
            // At the second instruction.
            put(
                field(frame, layout.instruction),
                BASE + field(code, layout.instructions) + 2,
            );
            put(field(frame, 70) - 6, if index == 2 { 3 << 48 } else { 0 });
            put(field(code, TYPE_AT), BASE + CODE_TYPE);
            put(field(code, layout.filename), BASE + code + 0x200);
            put(field(code, layout.qualified_name), BASE + code + 0x300);
            put(field(code, layout.line_table), BASE + code + 0x400);
            put(field(code, layout.first_line), 10 * (index as u64 + 1));
            put(code + 0x400 + LENGTH_AT as u64, 4);
        }
        let mut write = |at: u64, text: &[u8]| {
            bytes[at as usize..at as usize + text.len()].copy_from_slice(text);
        };
        for (code, name) in [(0x7000, "inner"), (0x7800, "outer"), (0x8000, "shim")] {
            for (at, text) in [(0x200, "app.py"), (0x300, name)] {
                write(code + at + 16, &[text.len() as u8]);
                write(code + at + 40, text.as_bytes());
            }
            // A line for each of two instructions, the second one below.
            write(
                code + 0x400 + BYTES_AT as u64,
                &[0x80 | 13 << 3, 0, 0x80 | 13 << 3, 2],
            );
        }
        bytes
    }

    /// The memory of a process that has these bytes, with the number of readings.
    struct Bytes<'a>(&'a [u8], Cell<usize>);

    impl Bytes<'_> {
        fn at(&self, at: u64, length: usize) -> Option<Vec<u8>> {
            let at = usize::try_from(at.checked_sub(BASE)?).ok()?;
            Some(self.0.get(at..at.checked_add(length)?)?.to_vec())
        }

        fn readings(&self) -> usize {
            self.1.take()
        }
    }

    impl Memory for Bytes<'_> {
        fn read(&self, at: u64, length: usize) -> Option<Vec<u8>> {
            self.1.set(self.1.get() + 1);
            self.at(at, length)
        }

        fn read_each(&self, places: &[u64], length: usize) -> Vec<Option<Vec<u8>>> {
            self.1.set(self.1.get() + 1);
            places.iter().map(|at| self.at(*at, length)).collect()
        }
    }

    fn read_of(bytes: &[u8]) -> Bytes<'_> {
        Bytes(bytes, Cell::new(0))
    }

    fn found(bytes: &[u8], tid: u32) -> Result<Vec<(String, Option<u32>)>, String> {
        let read = read_of(bytes);
        let mut interpreter = Interpreter::open(SYMBOLS, BASE, &read)?;
        let frames = interpreter.frames(&ProcFs::default(), TID, tid, &read);
        let said = frames
            .iter()
            .map(|it| (it.code.function.clone(), it.code.line_at(it.offset)));
        Ok(said.collect())
    }

    #[test]
    fn a_thread_has_its_functions_with_their_lines() {
        let expected = [
            (String::from("inner"), Some(11)),
            (String::from("outer"), Some(21)),
        ];
        assert_eq!(found(&memory(), TID).unwrap(), expected);
        assert_eq!(found(&memory(), 79).unwrap(), [], "no thread of Python");
        assert!(Interpreter::open(SYMBOLS, BASE, &read_of(&[])).is_err());
    }

    /// Each is a system call, while the thread may go on.
    #[test]
    fn the_functions_of_a_thread_that_is_known_take_four_readings() {
        let bytes = memory();
        let read = read_of(&bytes);
        let mut interpreter = Interpreter::open(SYMBOLS, BASE, &read).unwrap();
        interpreter.frames(&ProcFs::default(), TID, TID, &read);
        read.readings();
        let frames = interpreter.frames(&ProcFs::default(), TID, TID, &read);
        // Its state, where that points to, its frames, and all of their code.
        assert_eq!((frames.len(), read.readings()), (2, 4));
    }

    #[test]
    fn code_that_cannot_be_read_is_left_out() {
        let mut bytes = memory();
        let at = 0x6200 + layout::layout_of(0x030c_0000, &[]).unwrap().code;
        bytes[at..at + 8].copy_from_slice(&(BASE + 0xfff0).to_le_bytes());
        let names: Vec<_> = found(&bytes, TID)
            .unwrap()
            .into_iter()
            .map(|it| it.0)
            .collect();
        assert_eq!(names, ["outer"]);
    }

    #[test]
    fn the_state_of_the_runtime_has_the_lock() {
        let bytes = memory();
        let interpreter = Interpreter::open(SYMBOLS, BASE, &read_of(&bytes)).unwrap();
        assert!(interpreter.is_global_lock(BASE + RUNTIME + 0x500));
        assert!(!interpreter.is_global_lock(BASE + RUNTIME + 0x1000));
    }

    #[test]
    fn another_code_object_at_the_same_place_is_read_again() {
        let mut bytes = memory();
        let mut interpreter = Interpreter::open(SYMBOLS, BASE, &read_of(&bytes)).unwrap();
        let proc_fs = ProcFs::default();
        let before = interpreter.frames(&proc_fs, TID, TID, &read_of(&bytes));
        assert_eq!(before[0].code.function, "inner");
        // Its name stands elsewhere now.
        let place = 0x7000 + 128;
        bytes[place..place + 8].copy_from_slice(&(BASE + 0x7800 + 0x300).to_le_bytes());
        let after = interpreter.frames(&proc_fs, TID, TID, &read_of(&bytes));
        assert_eq!(after[0].code.function, "outer");
    }

    /// What a program overwrites is no reason to fail, nor to read for ever.
    #[test]
    fn whatever_stands_in_memory() {
        let valid = memory();
        let used: Vec<usize> = (0..valid.len()).step_by(8).collect();
        let words = used.iter().filter(|at| valid[**at..**at + 8] != [0; 8]);
        for at in words {
            for value in [
                0,
                1,
                u64::MAX,
                BASE,
                BASE + THREAD,
                BASE + 0x6000,
                BASE + 0xfff8,
            ] {
                let mut bytes = valid.clone();
                bytes[*at..*at + 8].copy_from_slice(&value.to_le_bytes());
                let _ = found(&bytes, TID);
            }
        }
    }
}
