//! Copies the top of the stack of a thread that is blocked, without stopping it.
//!
//! The thread may be woken at any time. So the number of times that it was put on a CPU is read before and
//! after: if it is the same, the thread did not run in between, and what was copied is of one moment. Else
//! the sample is *torn*: it could name a place where the thread never waited, and is dropped.

use std::collections::HashMap;
use std::io::IoSliceMut;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use concurve_clock as clock;
use concurve_probe::ProbeError;
use concurve_probe::golang::Parked;
use concurve_probe::proc_fs::{ProcFs, SchedstatFile, SyscallFile};
use concurve_probe::syscall::{Call, Doing, Kind, Wait};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use crate::cpython::{Interpreter, Memory, PythonFrame, Symbols};
use crate::maps::{MappedFile, Maps};

/// Bytes of the stack that are copied: a few frames of the program above those of its libraries.
const STACK_BYTES: usize = 8 << 10;
/// Bytes of a futex word and what stands behind it: in a mutex of glibc, the thread that has it.
const WORD_BYTES: usize = 16;
/// The same of the stack of a goroutine, which is small.
const GOROUTINE_STACK_BYTES: u64 = 2 << 10;
/// No page is smaller. What is not mapped ends the copy at the end of a page.
const PAGE_BYTES: u64 = 4096;
/// After this time the mappings of a process are read again, and then after twice as long each time: it
/// may have loaded libraries meanwhile.
const MAPS_VALID_NS: u64 = 100_000_000;
/// What is mapped in more processes than this is forgotten, where it is not needed at once.
const PROCESSES_MAX: usize = 64;
/// Files of an interpreter have it in their name, if they are not the program itself.
const PYTHON: &str = "python";

/// The top of the stack of a thread that was blocked.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// Of all that this watcher took.
    pub number: u64,
    pub pid: u32,
    /// Of a goroutine: its own number.
    pub tid: u32,
    /// The name of the system call; of a goroutine, what the runtime says that it waits for.
    pub call: &'static str,
    /// Where the thread continues, and its stack pointer.
    pub instruction: u64,
    pub stack_pointer: u64,
    /// The instruction stands behind a call, and not behind a system call.
    pub is_return_address: bool,
    /// From the stack pointer on.
    pub stack: Vec<u8>,
    /// What it waits at, in a futex call.
    pub word: Option<Word>,
    pub maps: Arc<Maps>,
    pub python: Python,
    /// Beyond the first one, which samples saw the same wait.
    pub repeated: u64,
}

/// What the interpreter of Python says of a thread.
#[derive(Debug, Clone, Default)]
pub enum Python {
    /// The thread runs no Python.
    #[default]
    None,
    Frames {
        /// The innermost one first.
        frames: Vec<PythonFrame>,
        /// The file that the interpreter is in.
        interpreter: Arc<str>,
        /// It waits for the global interpreter lock.
        is_global_lock: bool,
    },
    /// Why its frames are not known.
    Unknown(String),
}

impl Python {
    /// The file of the interpreter, of a thread whose frames are known.
    pub fn interpreter(&self) -> Option<&str> {
        match self {
            Self::Frames { interpreter, .. } => Some(interpreter),
            _ => None,
        }
    }

    /// Whether the thread waits for the global interpreter lock, and its frames are known.
    pub fn is_global_lock(&self) -> bool {
        matches!(
            self,
            Self::Frames {
                is_global_lock: true,
                ..
            }
        )
    }
}

/// A futex word with what stands behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    pub address: u64,
    /// None if it could not be read.
    pub bytes: Option<[u8; WORD_BYTES]>,
}

/// What an attempt to sample a thread gave.
#[derive(Debug)]
pub enum Captured {
    Wait(Sample),
    /// The thread has not run since it was sampled: it waits as in the sample of this number.
    SameWait(u64),
    /// It ran while it was sampled.
    Torn,
    /// It was left out, because samples may take no more time or because reading it could make it wait.
    Skipped,
    /// Why the host does not permit it.
    Refused(String),
}

impl Captured {
    /// The number of the sample that says where the thread waits, if one does.
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Wait(sample) => Some(sample.number),
            Self::SameWait(number) => Some(*number),
            Self::Torn | Self::Skipped | Self::Refused(_) => None,
        }
    }
}

/// A thread that may be sampled again.
#[derive(Debug)]
pub struct Watched {
    pid: u32,
    tid: u32,
    schedstat: SchedstatFile,
    /// How often it had been put on a CPU when it was sampled last, and the number of that sample.
    last: Option<(u64, u64)>,
    /// The number of the maps that it was sampled with.
    maps: u64,
}

impl Watched {
    /// Opens a thread's account; none if it has ended.
    pub fn open(proc_fs: &ProcFs, pid: u32, tid: u32) -> Option<Self> {
        let schedstat = proc_fs.open_schedstat(pid, tid).ok()?;
        Some(Self {
            pid,
            tid,
            schedstat,
            last: None,
            maps: 0,
        })
    }

    /// The number of its last sample, if it was ever sampled.
    pub fn sampled(&self) -> Option<u64> {
        self.last.map(|(_, number)| number)
    }
}

/// Samples the threads of some processes.
#[derive(Debug)]
pub struct Watcher {
    proc_fs: ProcFs,
    processes: HashMap<u32, Process>,
    /// Files that were looked at for an interpreter.
    symbols: HashMap<MappedFile, Option<Symbols>>,
    taken: u64,
    turn: u64,
    opening_cpu_ns: u64,
    buffer: Box<[u8; STACK_BYTES + WORD_BYTES]>,
}

#[derive(Debug)]
struct Process {
    program: Option<PathBuf>,
    maps: Arc<Maps>,
    python: Option<(Arc<str>, Result<Interpreter, String>)>,
    read_ns: u64,
    valid_ns: u64,
    /// The last turn in which it was seen to execute its program still.
    turn: u64,
}

impl Watcher {
    pub fn new(proc_fs: ProcFs) -> Self {
        Self {
            proc_fs,
            processes: HashMap::new(),
            symbols: HashMap::new(),
            taken: 0,
            turn: 0,
            opening_cpu_ns: 0,
            buffer: Box::new([0; STACK_BYTES + WORD_BYTES]),
        }
    }

    /// Begins a turn, in which threads of these processes may be sampled: each may execute another program by now.
    pub fn begin(&mut self, pids: &[u32]) {
        self.turn += 1;
        if self.processes.len() >= PROCESSES_MAX {
            self.processes.retain(|pid, _| pids.contains(pid));
        }
    }

    /// Samples a thread that was seen blocked in a call for a lock, if it still is; none if it has ended.
    pub fn capture(&mut self, thread: &mut Watched, call: &SyscallFile) -> Option<Captured> {
        if !cfg!(target_arch = "x86_64") {
            let reason = "stacks can be unwound on x86-64 only";
            return Some(Captured::Refused(reason.into()));
        }
        let runs = thread.schedstat.read()?.slices;
        if let Some((before, number)) = thread.last
            && before == runs
        {
            return Some(Captured::SameWait(number));
        }
        let doing = match call.read() {
            Ok(doing) => doing,
            Err(error) => return refusal(&error).map(Captured::Refused),
        };
        let Doing::Call(call) = doing else {
            return Some(Captured::Torn);
        };
        let Some((name, word)) = lock_of(&call) else {
            return Some(Captured::Torn);
        };
        // Who executes another program ends all threads but the first: this one cannot be read any more then.
        let is_first = thread.tid == thread.pid;
        let known = self.processes.get(&thread.pid);
        if is_first || known.is_some_and(|it| it.maps.number() != thread.maps) {
            self.forget_if_it_changed(thread.pid);
        }
        let maps = self.maps(thread.pid, call.instruction_pointer())?;
        thread.maps = maps.number();
        let python = self.python(thread.pid, thread.tid, word);
        let copied = match python.is_global_lock() {
            // Where its stack leads is known.
            true => Ok((Vec::new(), None)),
            false => self.copy(thread.pid, call.stack_pointer(), word),
        };
        let (stack, bytes) = match copied {
            Ok(copied) => copied,
            Err(nix::Error::ESRCH) => return None,
            Err(errno @ (nix::Error::EPERM | nix::Error::EACCES | nix::Error::ENOSYS)) => {
                let reason = format!(
                    "read the stack of a thread of process {}: {errno}",
                    thread.pid
                );
                return Some(Captured::Refused(format!(
                    "{reason}{}",
                    advice(errno as i32)
                )));
            }
            // Its stack is gone already.
            Err(_) => return Some(Captured::Torn),
        };
        if thread.schedstat.read()?.slices != runs {
            return Some(Captured::Torn);
        }
        let number = self.taken;
        self.taken += 1;
        thread.last = Some((runs, number));
        Some(Captured::Wait(Sample {
            number,
            pid: thread.pid,
            tid: thread.tid,
            call: name,
            instruction: call.instruction_pointer(),
            stack_pointer: call.stack_pointer(),
            is_return_address: false,
            stack,
            word: word.map(|address| Word { address, bytes }),
            maps,
            python,
            repeated: 0,
        }))
    }

    /// Samples a goroutine that was seen waiting at a lock, if it still does; none if its process has ended. It has no
    /// account that says whether it ran meanwhile: so its stack is copied twice, and both copies must be the same.
    pub fn capture_goroutine(&mut self, pid: u32, parked: &Parked) -> Option<Captured> {
        self.forget_if_it_changed(pid);
        let maps = self.maps(pid, parked.instruction)?;
        let length = parked.stack_end.saturating_sub(parked.stack_pointer);
        let length = length.min(GOROUTINE_STACK_BYTES) as usize;
        let copy = || read_memory(pid, parked.stack_pointer, length);
        let stack = copy();
        let is_same = stack.is_some() && copy() == stack;
        let context = read_memory(pid, parked.context, Parked::CONTEXT_BYTES);
        let waits = context.is_some_and(|it| parked.is_at(&it));
        let Some(stack) = stack.filter(|_| is_same && waits) else {
            return Some(Captured::Torn);
        };
        let number = self.taken;
        self.taken += 1;
        Some(Captured::Wait(Sample {
            number,
            pid,
            tid: parked.number as u32,
            call: parked.reason,
            instruction: parked.instruction,
            stack_pointer: parked.stack_pointer,
            stack,
            is_return_address: true,
            maps,
            ..Sample::default()
        }))
    }

    /// What is mapped in a process; none if it has ended.
    fn maps(&mut self, pid: u32, instruction: u64) -> Option<Arc<Maps>> {
        let now = clock::monotonic_ns();
        let mut valid_ns = MAPS_VALID_NS;
        if let Some(process) = self.processes.get(&pid) {
            let age_ns = now - process.read_ns;
            let is_there = process.maps.at(instruction).is_some();
            // Code that was made at run time is in no file, however often they are read.
            if age_ns < MAPS_VALID_NS || is_there && age_ns < process.valid_ns {
                return Some(process.maps.clone());
            }
            valid_ns = 2 * process.valid_ns;
        }
        let cpu_before = clock::thread_cpu_ns();
        let text = self.proc_fs.maps(pid).ok()?;
        let maps = Arc::new(Maps::new(&text, &self.proc_fs.root_directory(pid)));
        let known = self.processes.remove(&pid).and_then(|it| it.python);
        let program = self.proc_fs.program_path(pid);
        let python = known.or_else(|| self.interpreter(pid, &maps, program.as_deref()));
        let process = Process {
            program,
            maps: maps.clone(),
            python,
            read_ns: now,
            valid_ns,
            turn: self.turn,
        };
        self.processes.insert(pid, process);
        self.opening_cpu_ns += clock::thread_cpu_ns() - cpu_before;
        Some(maps)
    }

    /// Forgets what was mapped in a process that executes another program now. It is asked at most once in a turn, and
    /// only where something is to be copied: where threads wait for long, nothing is.
    fn forget_if_it_changed(&mut self, pid: u32) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        if process.turn == self.turn {
            return;
        }
        if process.program == self.proc_fs.program_path(pid) {
            process.turn = self.turn;
        } else {
            self.processes.remove(&pid);
        }
    }

    /// The interpreter of Python that a process has, with its file.
    fn interpreter(
        &mut self,
        pid: u32,
        maps: &Maps,
        program: Option<&Path>,
    ) -> Option<(Arc<str>, Result<Interpreter, String>)> {
        for (path, file, begin) in maps.programs() {
            let name = path.rsplit('/').next().unwrap_or(path);
            if !name.contains(PYTHON) && program != Some(Path::new(&**path)) {
                continue;
            }
            let look = || Symbols::of(file.path()?);
            let found = *self.symbols.entry(file.clone()).or_insert_with(look);
            if let Some(symbols) = found {
                let moved_by = if symbols.is_relative { begin } else { 0 };
                let opened = Interpreter::open(symbols, moved_by, &ProcessMemory(pid));
                return Some((path.clone(), opened));
            }
        }
        None
    }

    /// The functions of Python that a thread is in.
    fn python(&mut self, pid: u32, tid: u32, word: Option<u64>) -> Python {
        let process = self.processes.get_mut(&pid);
        let (path, interpreter) = match process.and_then(|it| it.python.as_mut()) {
            None => return Python::None,
            Some((_, Err(reason))) => return Python::Unknown(reason.clone()),
            Some((path, Ok(interpreter))) => (path, interpreter),
        };
        let frames = interpreter.frames(&self.proc_fs, pid, tid, &ProcessMemory(pid));
        if frames.is_empty() {
            return Python::None;
        }
        Python::Frames {
            frames,
            interpreter: path.clone(),
            is_global_lock: word.is_some_and(|it| interpreter.is_global_lock(it)),
        }
    }

    /// CPU time that went into learning what is mapped, and was not taken yet.
    pub fn opening_cpu_ns(&self) -> u64 {
        self.opening_cpu_ns
    }

    /// The same, from now on 0. It comes a few times, so it is no part of what samples
    /// may cost.
    pub fn take_opening_cpu_ns(&mut self) -> u64 {
        std::mem::take(&mut self.opening_cpu_ns)
    }

    /// Copies a stack up to the end of its mapping, and a futex word.
    fn copy(
        &mut self,
        pid: u32,
        stack_pointer: u64,
        word: Option<u64>,
    ) -> nix::Result<(Vec<u8>, Option<[u8; WORD_BYTES]>)> {
        let pid = Pid::from_raw(pid as i32);
        let mut remote = pages(stack_pointer, STACK_BYTES as u64);
        // A piece that cannot be read ends the copy, so the word comes first.
        let front = if let Some(address) = word {
            remote.insert(0, piece(address, WORD_BYTES as u64));
            WORD_BYTES
        } else {
            0
        };
        let copied = self.read(pid, &remote, front + STACK_BYTES);
        if front > 0 && !copied.is_ok_and(|length| length >= front) {
            let length = self.read(pid, &remote[1..], STACK_BYTES)?;
            return Ok((self.buffer[..length].to_vec(), None));
        }
        let length = copied?;
        let word = self.buffer.first_chunk().filter(|_| front > 0).copied();
        Ok((self.buffer[front..length].to_vec(), word))
    }

    fn read(&mut self, pid: Pid, remote: &[RemoteIoVec], length: usize) -> nix::Result<usize> {
        let local = &mut [IoSliceMut::new(&mut self.buffer[..length])];
        process_vm_readv(pid, local, remote)
    }
}

/// The memory of a process, by its number.
struct ProcessMemory(u32);

impl Memory for ProcessMemory {
    fn read(&self, at: u64, length: usize) -> Option<Vec<u8>> {
        read_memory(self.0, at, length)
    }

    fn read_each(&self, places: &[u64], length: usize) -> Vec<Option<Vec<u8>>> {
        let pid = Pid::from_raw(self.0 as i32);
        let mut found = Vec::with_capacity(places.len());
        let mut bytes = vec![0; places.len() * length];
        // What cannot be read ends a reading, so the next one begins behind it.
        while let rest @ [_, ..] = &places[found.len()..] {
            let pieces: Vec<_> = rest.iter().map(|at| piece(*at, length as u64)).collect();
            let local = &mut [IoSliceMut::new(&mut bytes[..rest.len() * length])];
            let copied = process_vm_readv(pid, local, &pieces).unwrap_or(0);
            found.extend(
                bytes[..copied]
                    .chunks_exact(length)
                    .map(|it| Some(it.to_vec())),
            );
            if found.len() < places.len() {
                found.push(None);
            }
        }
        found
    }
}

/// Reads the memory of a process.
fn read_memory(pid: u32, at: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    let local = &mut [IoSliceMut::new(&mut bytes)];
    let copied = process_vm_readv(
        Pid::from_raw(pid as i32),
        local,
        &[piece(at, length as u64)],
    );
    (copied == Ok(length)).then_some(bytes)
}

/// The name of the call and the futex word, of a call that waits for a lock.
fn lock_of(call: &Call) -> Option<(&'static str, Option<u64>)> {
    match call.wait() {
        Wait::Futex { word, .. } => Some(("futex", Some(word))),
        Wait::Known(Kind::FileLock) => Some((call.name().unwrap_or("fcntl"), None)),
        // Asked for where it watches no socket alone.
        Wait::Epoll(_) => Some(("epoll_wait", None)),
        _ => None,
    }
}

/// Pieces that end where pages do: what is read is whole pieces.
fn pages(address: u64, length: u64) -> Vec<RemoteIoVec> {
    let end = address.saturating_add(length);
    let mut pieces = Vec::with_capacity(4);
    let mut at = address;
    while at < end {
        let next = ((at | (PAGE_BYTES - 1)).saturating_add(1)).min(end);
        pieces.push(piece(at, next - at));
        at = next;
    }
    pieces
}

fn piece(address: u64, length: u64) -> RemoteIoVec {
    RemoteIoVec {
        base: address as usize,
        len: length as usize,
    }
}

/// Why a reading failed; none if the thread has ended.
fn refusal(error: &ProbeError) -> Option<String> {
    match error.errno() {
        Some(ESRCH | ENOENT) => None,
        errno => Some(format!("{error}{}", errno.map_or("", advice))),
    }
}

const ESRCH: i32 = nix::Error::ESRCH as i32;
const ENOENT: i32 = nix::Error::ENOENT as i32;
const EPERM: i32 = nix::Error::EPERM as i32;
const EACCES: i32 = nix::Error::EACCES as i32;

fn advice(errno: i32) -> &'static str {
    match errno {
        EPERM | EACCES => {
            "; it needs the right to trace the program: see kernel.yama.ptrace_scope, and whether the \
             program is set-user-ID"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::*;

    #[test]
    fn pieces_end_where_pages_do() {
        let lengths = |address, length| -> Vec<usize> {
            pages(address, length).iter().map(|it| it.len).collect()
        };
        assert_eq!(lengths(0x7000, 8192), [4096, 4096]);
        assert_eq!(lengths(0x7ff8, 8192), [8, 4096, 4088]);
        assert_eq!(lengths(u64::MAX - 7, 8192), [7]);
    }

    #[test]
    fn what_cannot_be_read_is_none_among_what_can() {
        let own = [7_u64, 8, 9];
        let at = |index: usize| &raw const own[index] as u64;
        let memory = ProcessMemory(std::process::id());
        let read = |places: &[u64]| -> Vec<Option<u64>> {
            let found = memory.read_each(places, 8);
            let word = |it: Vec<u8>| u64::from_le_bytes(it.try_into().unwrap());
            found.into_iter().map(|it| it.map(word)).collect()
        };
        assert_eq!(read(&[]), []);
        assert_eq!(read(&[at(2), at(0)]), [Some(9), Some(7)]);
        assert_eq!(
            read(&[8, at(1), 16, 24, at(0), 8]),
            [None, Some(8), None, None, Some(7), None]
        );
        assert!(ProcessMemory(0x7fff_fff0).read_each(&[at(0)], 8) == [None]);
    }

    #[test]
    fn what_is_mapped_is_read_again_once_another_program_is_executed() {
        let folder = tempfile::tempdir().unwrap();
        let another = folder.path().canonicalize().unwrap().join("sh");
        let proc_fs = ProcFs::default();
        let mut child = Command::new("sh")
            .args(["-c", "read path; exec \"$path\" -c 'read line'"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id();
        std::fs::copy(proc_fs.program_path(pid).unwrap(), &another).unwrap();
        let mut watcher = Watcher::new(proc_fs.clone());
        let mut has = |another: &Path| {
            watcher.begin(&[pid]);
            watcher.forget_if_it_changed(pid);
            let maps = watcher.maps(pid, 0).unwrap();
            let mut programs = maps.programs();
            programs.any(|(path, ..)| Path::new(&**path) == another)
        };
        assert!(!has(&another));
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "{}", another.display()).unwrap();
        let is_text = |it: &str| it.contains(" r-xp ") && it.ends_with(another.to_str().unwrap());
        let executes = || {
            let maps = proc_fs.maps(pid);
            maps.is_ok_and(|it| it.lines().any(is_text))
        };
        while !executes() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let found = has(&another);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found);
    }

    #[test]
    fn a_thread_that_runs_is_torn_and_one_that_has_ended_is_nothing() {
        let proc_fs = ProcFs::default();
        let own = std::process::id();
        let tid = nix::unistd::gettid().as_raw() as u32;
        let runs = proc_fs.open_syscall(own, tid).unwrap();
        let mut watcher = Watcher::new(proc_fs.clone());
        let mut thread = Watched::open(&proc_fs, own, tid).unwrap();
        assert!(matches!(
            watcher.capture(&mut thread, &runs),
            Some(Captured::Torn)
        ));
        assert!(Watched::open(&proc_fs, own, 0x7fff_fff0).is_none());
    }
}
