//! Looks on what threads wait, in a thread of its own: reading `/proc/PID/task/TID/syscall` waits
//! for a thread that is about to sleep, and the end of a program must not be noticed late for it.

use std::collections::HashMap;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use concurve_clock as clock;
use concurve_probe::ProbeError;
use concurve_probe::proc_fs::{ProcFs, SyscallFile};
use concurve_probe::syscall::{Call, Doing, Kind, Wait};
use nix::sys::resource::{Resource, getrlimit};

use crate::waits::Sight;

/// How long it is believed what a descriptor is.
const BELIEVED_NS: u64 = 200_000_000;
/// Share of the descriptors that a process may have, for the files that are kept open here. The
/// others are opened for each reading.
const SHARE_OF_DESCRIPTORS: u64 = 4;

/// A thread to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    pub role: usize,
    pub pid: u32,
    pub tid: u32,
}

/// What was seen of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observation {
    Seen(Sight),
    /// The host does not say, and why.
    Refused(String),
}

/// What was seen in one look at all.
#[derive(Debug, Default)]
pub struct Look {
    pub observations: Vec<(Subject, Observation)>,
    pub cpu_ns: u64,
}

/// The thread that looks.
#[derive(Debug)]
pub struct Watcher {
    orders: Sender<Vec<Subject>>,
    looks: Receiver<Look>,
    /// A look was ordered and has not come.
    busy: bool,
}

impl Watcher {
    /// Starts it.
    pub fn start(proc_fs: &ProcFs) -> std::io::Result<Self> {
        let (orders, ordered) = mpsc::channel::<Vec<Subject>>();
        let (answers, looks) = mpsc::channel();
        let mut eyes = Eyes::new(proc_fs.clone());
        // It ends with the runner.
        thread::Builder::new()
            .name("watcher".into())
            .spawn(move || {
                for subjects in ordered {
                    if answers.send(eyes.look(&subjects)).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self {
            orders,
            looks,
            busy: false,
        })
    }

    /// Orders a look, unless it is at one still.
    pub fn order(&mut self, subjects: Vec<Subject>) {
        if !self.busy && !subjects.is_empty() {
            self.busy = self.orders.send(subjects).is_ok();
        }
    }

    /// The look that was ordered, once it is done.
    pub fn take(&mut self) -> Option<Look> {
        let look = self.looks.try_recv().ok()?;
        self.busy = false;
        Some(look)
    }
}

/// Reads the files.
#[derive(Debug)]
struct Eyes {
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

impl Eyes {
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

    fn look(&mut self, subjects: &[Subject]) -> Look {
        let cpu_before = clock::thread_cpu_ns();
        self.turn += 1;
        let mut observations = Vec::with_capacity(subjects.len());
        for subject in subjects {
            let observation = match self.read(subject.pid, subject.tid) {
                Ok(doing) => self.sight(*subject, doing).map(Observation::Seen),
                Err(error) => self.refusal(&error),
            };
            observations.extend(observation.map(|it| (*subject, it)));
        }
        self.forget();
        Look {
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

    fn sight(&mut self, subject: Subject, doing: Doing) -> Option<Sight> {
        match doing {
            Doing::Running => Some(Sight::Running),
            Doing::Call(call) => Some(self.wait(subject.pid, call)),
            Doing::Outside => self.outside(subject).map(Sight::Waiting),
            Doing::Gone => None,
        }
    }

    fn wait(&mut self, pid: u32, call: Call) -> Sight {
        match call.wait() {
            Wait::Futex(address) => Sight::Futex(Some(address)),
            Wait::Known(Kind::Futex) => Sight::Futex(None),
            Wait::Known(kind) => Sight::Waiting(kind),
            Wait::Descriptor(number) => Sight::Waiting(self.descriptor(pid, number)),
        }
    }

    /// A page fault waits uninterruptibly, for the disk more often than not; a stop does not.
    fn outside(&self, subject: Subject) -> Option<Kind> {
        let stat = self.proc_fs.thread_stat(subject.pid, subject.tid).ok()?;
        Some(match stat.state {
            'D' => Kind::Disk,
            _ => Kind::Other,
        })
    }

    fn descriptor(&mut self, pid: u32, number: u32) -> Kind {
        let now = clock::monotonic_ns();
        match self.descriptors.get(&(pid, number)) {
            Some((kind, at_ns)) if now - at_ns < BELIEVED_NS => *kind,
            _ => {
                let kind = self.proc_fs.descriptor_kind(pid, number);
                let kind = kind.unwrap_or(Kind::Other);
                self.descriptors.insert((pid, number), (kind, now));
                kind
            }
        }
    }

    /// Nothing of a thread that has ended.
    fn refusal(&self, error: &ProbeError) -> Option<Observation> {
        let own = std::process::id();
        let gone = match error.errno() {
            Some(libc::ESRCH) => true,
            // No such file: of this thread, or of any.
            Some(libc::ENOENT) => self.proc_fs.open_syscall(own, own).is_ok(),
            _ => false,
        };
        let advice = match error.errno() {
            Some(libc::EPERM | libc::EACCES) => {
                "; it needs the right to trace the program: see kernel.yama.ptrace_scope, and \
                 whether the program is set-user-ID"
            }
            Some(libc::ENOENT) => "; this kernel does not tell",
            _ => "",
        };
        (!gone).then(|| Observation::Refused(format!("{error}{advice}")))
    }

    /// Closes what was not looked at this time, and lets go of what is no longer believed.
    fn forget(&mut self) {
        let turn = self.turn;
        self.files.retain(|_, kept| kept.turn == turn);
        if self.descriptors.len() > 1000 {
            let now = clock::monotonic_ns();
            self.descriptors
                .retain(|_, (_, at_ns)| now - *at_ns < BELIEVED_NS);
        }
    }
}
