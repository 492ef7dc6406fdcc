//! Samples what threads wait for, in a thread of its own: a read of `/proc/PID/task/TID/syscall`
//! blocks while that thread is about to sleep, and must not delay the event loop.

use std::collections::HashMap;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use concurve_clock as clock;
use concurve_probe::ProbeError;
use concurve_probe::proc_fs::{ProcFs, SyscallFile};
use concurve_probe::syscall::{Call, Doing, Kind, Wait};
use nix::sys::resource::{Resource, getrlimit};

use crate::waits::Activity;

/// How long the kind of a descriptor is cached.
const DESCRIPTOR_KIND_VALID_NS: u64 = 200_000_000;
/// Share of the descriptors that a process may have, for the files that are kept open here. The
/// others are opened for each reading.
const SHARE_OF_DESCRIPTORS: u64 = 4;

/// A thread to sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledThread {
    pub role: usize,
    pub pid: u32,
    pub tid: u32,
}

/// What one thread was doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observation {
    Seen(Activity),
    /// Why the host does not say.
    Refused(String),
}

/// One sample of all requested threads.
#[derive(Debug, Default)]
pub struct WaitSample {
    pub observations: Vec<(SampledThread, Observation)>,
    pub cpu_ns: u64,
}

/// The handle of the sampling thread.
#[derive(Debug)]
pub struct WaitSamplerThread {
    requests: Sender<Vec<SampledThread>>,
    samples: Receiver<WaitSample>,
    /// A sample was requested and has not arrived.
    busy: bool,
}

impl WaitSamplerThread {
    /// Starts the thread.
    pub fn start(proc_fs: &ProcFs) -> std::io::Result<Self> {
        let (requests, requested) = mpsc::channel::<Vec<SampledThread>>();
        let (answers, samples) = mpsc::channel();
        let mut reader = SyscallReader::new(proc_fs.clone());
        // It ends when the runner drops its handle or exits.
        thread::Builder::new()
            .name("watcher".into())
            .spawn(move || {
                for threads in requested {
                    if answers.send(reader.sample(&threads)).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self {
            requests,
            samples,
            busy: false,
        })
    }

    /// Requests a sample, unless one is under way.
    pub fn request(&mut self, threads: Vec<SampledThread>) {
        if !self.busy && !threads.is_empty() {
            self.busy = self.requests.send(threads).is_ok();
        }
    }

    /// The requested sample, once it is complete.
    pub fn take(&mut self) -> Option<WaitSample> {
        let sample = self.samples.try_recv().ok()?;
        self.busy = false;
        Some(sample)
    }
}

/// Reads the files.
#[derive(Debug)]
struct SyscallReader {
    proc_fs: ProcFs,
    files: HashMap<u32, KeptFile>,
    files_max: usize,
    descriptors: HashMap<(u32, u32), (Kind, u64)>,
    turn: u64,
}

#[derive(Debug)]
struct KeptFile {
    pid: u32,
    file: SyscallFile,
    turn: u64,
}

impl SyscallReader {
    fn new(proc_fs: ProcFs) -> Self {
        let (descriptors, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((1024, 1024));
        Self {
            proc_fs,
            files: HashMap::new(),
            files_max: (descriptors / SHARE_OF_DESCRIPTORS) as usize,
            descriptors: HashMap::new(),
            turn: 0,
        }
    }

    fn sample(&mut self, threads: &[SampledThread]) -> WaitSample {
        let cpu_before = clock::thread_cpu_ns();
        self.turn += 1;
        let mut observations = Vec::with_capacity(threads.len());
        for thread in threads {
            let observation = match self.read(thread.pid, thread.tid) {
                Ok(doing) => self.activity(*thread, doing).map(Observation::Seen),
                Err(error) => self.refusal(&error),
            };
            observations.extend(observation.map(|it| (*thread, it)));
        }
        self.forget();
        WaitSample {
            observations,
            cpu_ns: clock::thread_cpu_ns() - cpu_before,
        }
    }

    fn read(&mut self, pid: u32, tid: u32) -> concurve_probe::Result<Doing> {
        if let Some(kept) = self.files.get_mut(&tid).filter(|kept| kept.pid == pid) {
            kept.turn = self.turn;
            return kept.file.read();
        }
        let file = self.proc_fs.open_syscall(pid, tid)?;
        let doing = file.read();
        if self.files.len() < self.files_max {
            let turn = self.turn;
            self.files.insert(tid, KeptFile { pid, file, turn });
        }
        doing
    }

    fn activity(&mut self, thread: SampledThread, doing: Doing) -> Option<Activity> {
        match doing {
            Doing::Running => Some(Activity::Running),
            Doing::Call(call) => Some(self.wait(thread.pid, call)),
            Doing::Outside => self.outside(thread).map(Activity::Waiting),
            Doing::Gone => None,
        }
    }

    fn wait(&mut self, pid: u32, call: Call) -> Activity {
        match call.wait() {
            Wait::Futex(address) => Activity::Futex(Some(address)),
            Wait::Known(Kind::Futex) => Activity::Futex(None),
            Wait::Known(kind) => Activity::Waiting(kind),
            Wait::Descriptor(number) => Activity::Waiting(self.descriptor(pid, number)),
        }
    }

    /// The kind of a wait outside system calls: a page fault waits uninterruptibly, mostly for the
    /// disk; a stopped thread does not.
    fn outside(&self, thread: SampledThread) -> Option<Kind> {
        let stat = self.proc_fs.thread_stat(thread.pid, thread.tid).ok()?;
        Some(match stat.state {
            'D' => Kind::Disk,
            _ => Kind::Other,
        })
    }

    fn descriptor(&mut self, pid: u32, number: u32) -> Kind {
        let now = clock::monotonic_ns();
        match self.descriptors.get(&(pid, number)) {
            Some((kind, at_ns)) if now - at_ns < DESCRIPTOR_KIND_VALID_NS => *kind,
            _ => {
                let kind = self.proc_fs.descriptor_kind(pid, number);
                let kind = kind.unwrap_or(Kind::Other);
                self.descriptors.insert((pid, number), (kind, now));
                kind
            }
        }
    }

    /// Why a reading failed; none if the thread has ended.
    fn refusal(&self, error: &ProbeError) -> Option<Observation> {
        let own = std::process::id();
        let gone = match error.errno() {
            Some(libc::ESRCH) => true,
            // Is the file missing for this thread, or does this kernel have none?
            Some(libc::ENOENT) => self.proc_fs.open_syscall(own, own).is_ok(),
            _ => false,
        };
        let advice = match error.errno() {
            Some(libc::EPERM | libc::EACCES) => {
                "; it needs the right to trace the program: see kernel.yama.ptrace_scope, and \
                 whether the program is set-user-ID"
            }
            Some(libc::ENOENT) => "; this kernel does not provide it",
            _ => "",
        };
        (!gone).then(|| Observation::Refused(format!("{error}{advice}")))
    }

    /// Closes files that this sample did not use, and forgets expired kinds of descriptors.
    fn forget(&mut self) {
        let turn = self.turn;
        self.files.retain(|_, kept| kept.turn == turn);
        if self.descriptors.len() > 1000 {
            let now = clock::monotonic_ns();
            self.descriptors
                .retain(|_, (_, at_ns)| now - *at_ns < DESCRIPTOR_KIND_VALID_NS);
        }
    }
}
