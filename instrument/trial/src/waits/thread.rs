//! Samples what threads wait for, in a thread of its own: a read of `/proc/PID/task/TID/syscall`
//! blocks while that thread is about to sleep, and must not delay the event loop.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use concurve_clock as clock;
use concurve_probe::golang::Parked;
use concurve_probe::proc_fs::{ProcFs, SyscallFile};
use concurve_probe::syscall::{self, Call, Doing, Kind, Wait};
use concurve_probe::{ProbeError, open_files};
use concurve_sites::{Captured, Watched, Watcher};

use crate::waits::runtimes::{GoReading, Programs};
use crate::waits::{Activity, Word};

/// How long the kind of a descriptor is cached.
const DESCRIPTOR_KIND_VALID_NS: u64 = 200_000_000;
/// The same of an epoll instance, whose list is as long as a server has connections.
const EPOLL_KIND_VALID_NS: u64 = 2_000_000_000;
/// Share of the descriptors that the runner may have, for the files that are kept open here: two of a thread
/// that waits for a lock. The others are opened for each reading.
const SHARE_OF_DESCRIPTORS: u64 = 4;
const FILES_OF_A_THREAD: u64 = 2;
/// For so many turns after a program was seen changing its address space its memory is left alone.
pub const TURNS_AFTER_CHANGE: u64 = 100;

/// A thread to sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledThread {
    pub role: usize,
    pub pid: u32,
    pub tid: u32,
    /// It has not run since some samples: it waits as it did when it was sampled last.
    pub rests: bool,
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
    /// The names of the calls that threads waited in, where they have one, by role.
    pub calls: Vec<(usize, &'static str)>,
    /// What the runtimes of a role's processes say, by role.
    pub runtimes: BTreeMap<usize, Vec<GoReading>>,
    /// The tops of the stacks of what waited for locks, by role; each with its thread, if it is one.
    pub stacks: Vec<(usize, Option<u32>, Captured)>,
    /// In all, and of it for the stacks.
    pub cpu_ns: u64,
    pub stacks_cpu_ns: u64,
}

/// What is asked of the sampling thread.
#[derive(Debug)]
struct Request {
    threads: Vec<SampledThread>,
    /// CPU time that copying stacks may take.
    stacks_ns: u64,
}

/// The handle of the sampling thread.
#[derive(Debug)]
pub struct WaitSamplerThread {
    /// None once it was asked to end.
    requests: Option<Sender<Request>>,
    samples: Receiver<WaitSample>,
    /// A sample was requested and has not arrived.
    busy: bool,
}

impl WaitSamplerThread {
    /// Starts the thread.
    pub fn start(proc_fs: &ProcFs) -> std::io::Result<Self> {
        let (requests, requested) = mpsc::channel::<Request>();
        let (answers, samples) = mpsc::channel();
        let mut reader = SyscallReader::new(proc_fs.clone());
        // It ends when the runner drops its handle or exits.
        thread::Builder::new()
            .name("watcher".into())
            .spawn(move || {
                for request in requested {
                    if answers.send(reader.sample(&request)).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self {
            requests: Some(requests),
            samples,
            busy: false,
        })
    }

    /// Requests a sample, with stacks for so much CPU time, unless one is under way.
    pub fn request(&mut self, threads: Vec<SampledThread>, stacks_ns: u64) {
        if !self.busy && !threads.is_empty() {
            let request = Request { threads, stacks_ns };
            let requests = self.requests.as_ref();
            self.busy = requests.is_some_and(|it| it.send(request).is_ok());
        }
    }

    /// Ends the thread, after the sample that is under way.
    pub fn release(&mut self) {
        self.requests = None;
    }

    /// The requested sample, once it is complete.
    pub fn take(&mut self) -> Option<WaitSample> {
        let sample = self.samples.try_recv().ok()?;
        self.busy = false;
        Some(sample)
    }
}

/// In one turn of so many those that rest come as early as the others.
const TURNS_FOR_RESTING: u64 = 4;

/// Puts those first whose stacks tell most where the time is short. In each turn another one comes first, so
/// that all are seen; those that rest, as the many threads of a runtime or of an idle pool do, come behind the
/// others in most turns.
fn in_order(waiting: &mut [Waiter], turn: u64) {
    let first = turn as usize % waiting.len().max(1);
    waiting.rotate_left(first);
    if !turn.is_multiple_of(TURNS_FOR_RESTING) {
        waiting.sort_by_key(Waiter::rests);
    }
}

/// What waits for a lock.
#[derive(Debug)]
enum Waiter {
    Thread(SampledThread),
    /// Of a role and a process.
    Goroutine(usize, u32, Parked),
}

impl Waiter {
    fn role(&self) -> usize {
        match self {
            Self::Thread(thread) => thread.role,
            Self::Goroutine(role, ..) => *role,
        }
    }

    /// Of a thread.
    fn tid(&self) -> Option<u32> {
        match self {
            Self::Thread(thread) => Some(thread.tid),
            Self::Goroutine(..) => None,
        }
    }

    fn pid(&self) -> u32 {
        match self {
            Self::Thread(thread) => thread.pid,
            Self::Goroutine(_, pid, _) => *pid,
        }
    }

    /// Whether it has not run for some samples.
    fn rests(&self) -> bool {
        matches!(self, Self::Thread(thread) if thread.rests)
    }
}

/// Reads the files.
#[derive(Debug)]
struct SyscallReader {
    proc_fs: ProcFs,
    files: HashMap<u32, KeptFile>,
    files_max: usize,
    descriptors: HashMap<(u32, u32), (Kind, u64)>,
    programs: Programs,
    watcher: Watcher,
    changing: Changing,
    /// What it took in this turn to learn what is mapped in processes.
    opening_cpu_ns: u64,
    calls: Vec<(usize, &'static str)>,
    turn: u64,
}

/// The processes that were seen changing their address space. Who reads their memory takes the lock that they
/// need for it, so they might have to wait.
#[derive(Debug, Default)]
struct Changing {
    /// The turn in which a thread of each was last seen so.
    seen: HashMap<u32, u64>,
}

impl Changing {
    /// Takes in what the threads did in a turn.
    fn note(&mut self, observations: &[(SampledThread, Observation)], turn: u64) {
        for (thread, observation) in observations {
            if *observation == Observation::Seen(Activity::Waiting(Kind::Memory)) {
                self.seen.insert(thread.pid, turn);
            }
        }
        self.seen
            .retain(|_, seen| turn - *seen < TURNS_AFTER_CHANGE);
    }

    /// Whether the memory of a process is to be left alone.
    fn has(&self, pid: u32) -> bool {
        self.seen.contains_key(&pid)
    }
}

#[derive(Debug)]
struct KeptFile {
    pid: u32,
    file: SyscallFile,
    /// Of a thread that waited for a lock.
    watched: Option<Watched>,
    /// What it waited for when it was read last, and the name of the call; none if it did not wait in a call.
    last: Option<(Activity, Option<&'static str>)>,
    turn: u64,
}

impl SyscallReader {
    fn new(proc_fs: ProcFs) -> Self {
        let files_max = open_files::limit() / SHARE_OF_DESCRIPTORS / FILES_OF_A_THREAD;
        Self {
            watcher: Watcher::new(proc_fs.clone()),
            changing: Changing::default(),
            opening_cpu_ns: 0,
            proc_fs,
            files: HashMap::new(),
            files_max: files_max as usize,
            descriptors: HashMap::new(),
            programs: Programs::default(),
            calls: Vec::new(),
            turn: 0,
        }
    }

    fn sample(&mut self, request: &Request) -> WaitSample {
        let threads = &request.threads;
        let cpu_before = clock::thread_cpu_ns();
        self.turn += 1;
        let mut observations = Vec::with_capacity(threads.len());
        for thread in threads {
            if let Some(activity) = self.same(*thread) {
                observations.push((*thread, Observation::Seen(activity)));
                continue;
            }
            let observation = match self.read(thread.pid, thread.tid) {
                Ok(doing) => self.activity(*thread, doing).map(Observation::Seen),
                Err(error) => self.refusal(&error),
            };
            observations.extend(observation.map(|it| (*thread, it)));
        }
        // Before anything is read of their memory.
        self.changing.note(&observations, self.turn);
        let roles: BTreeMap<u32, usize> = threads.iter().map(|it| (it.pid, it.role)).collect();
        let pids = roles.keys().copied();
        let may_wait = |pid| self.changing.has(pid);
        let readings = self.programs.sample(pids, may_wait, &self.proc_fs);
        let waiters = waiters(&observations, &readings, &roles);
        let (stacks, stacks_cpu_ns) = self.stacks(waiters, request.stacks_ns);
        self.forget();
        let mut runtimes: BTreeMap<usize, Vec<GoReading>> = BTreeMap::new();
        for (pid, reading) in readings {
            runtimes.entry(roles[&pid]).or_default().push(reading);
        }
        WaitSample {
            observations,
            calls: std::mem::take(&mut self.calls),
            runtimes,
            stacks,
            stacks_cpu_ns,
            cpu_ns: clock::thread_cpu_ns()
                - cpu_before
                - self.programs.take_opening_cpu_ns()
                - std::mem::take(&mut self.opening_cpu_ns),
        }
    }

    /// Copies the tops of the stacks of those that wait for locks, within a CPU time; also returns what it
    /// took. In each turn another one comes first, so that all are seen where the time is short.
    fn stacks(
        &mut self,
        mut waiting: Vec<Waiter>,
        granted_ns: u64,
    ) -> (Vec<(usize, Option<u32>, Captured)>, u64) {
        if granted_ns == 0 {
            let skipped = waiting
                .iter()
                .map(|it| (it.role(), it.tid(), Captured::Skipped));
            return (skipped.collect(), 0);
        }
        if waiting.is_empty() {
            return (Vec::new(), 0);
        }
        let cpu_before = clock::thread_cpu_ns();
        let pids: BTreeSet<u32> = waiting.iter().map(Waiter::pid).collect();
        self.watcher.begin(&pids.into_iter().collect::<Vec<_>>());
        in_order(&mut waiting, self.turn);
        let mut stacks = Vec::with_capacity(waiting.len());
        for waiter in waiting {
            let spent_ns = clock::thread_cpu_ns() - cpu_before - self.watcher.opening_cpu_ns();
            // The first one in any case: else on a slow machine what comes before it would take it all.
            let is_granted = stacks.is_empty() || spent_ns < granted_ns;
            let may_wait = self.changing.has(waiter.pid());
            let captured = match self.same_wait(&waiter) {
                Some(number) => Some(Captured::SameWait(number)),
                None if is_granted && !may_wait => self.stack(&waiter),
                None => Some(Captured::Skipped),
            };
            stacks.extend(captured.map(|it| (waiter.role(), waiter.tid(), it)));
        }
        let opening_ns = self.watcher.take_opening_cpu_ns();
        self.opening_cpu_ns += opening_ns;
        (stacks, clock::thread_cpu_ns() - cpu_before - opening_ns)
    }

    /// What a thread that rests waits for, if that is known.
    fn same(&mut self, thread: SampledThread) -> Option<Activity> {
        let kept = self.files.get_mut(&thread.tid);
        let kept = kept.filter(|kept| thread.rests && kept.pid == thread.pid)?;
        let (activity, call) = kept.last?;
        kept.turn = self.turn;
        self.calls.extend(call.map(|name| (thread.role, name)));
        Some(activity)
    }

    /// The number of the stack of who rests since that was copied; to say so costs nothing.
    fn same_wait(&self, waiter: &Waiter) -> Option<u64> {
        let Waiter::Thread(thread) = waiter else {
            return None;
        };
        let kept = self.files.get(&thread.tid).filter(|_| thread.rests)?;
        kept.watched.as_ref().and_then(Watched::sampled)
    }

    fn stack(&mut self, waiter: &Waiter) -> Option<Captured> {
        let thread = match waiter {
            Waiter::Thread(thread) => thread,
            Waiter::Goroutine(_, pid, parked) => {
                return self.watcher.capture_goroutine(*pid, parked);
            }
        };
        let Some(kept) = self.files.get_mut(&thread.tid) else {
            return Some(Captured::Skipped);
        };
        if kept.watched.is_none() {
            kept.watched = Watched::open(&self.proc_fs, thread.pid, thread.tid);
        }
        self.watcher.capture(kept.watched.as_mut()?, &kept.file)
    }

    fn read(&mut self, pid: u32, tid: u32) -> concurve_probe::Result<Doing> {
        if let Some(kept) = self.files.get_mut(&tid).filter(|kept| kept.pid == pid) {
            kept.turn = self.turn;
            kept.last = None;
            return kept.file.read();
        }
        let file = self.proc_fs.open_syscall(pid, tid)?;
        let doing = file.read();
        if self.files.len() < self.files_max {
            let kept = KeptFile {
                pid,
                file,
                watched: None,
                last: None,
                turn: self.turn,
            };
            self.files.insert(tid, kept);
        }
        doing
    }

    fn activity(&mut self, thread: SampledThread, doing: Doing) -> Option<Activity> {
        match doing {
            Doing::Running => Some(Activity::Running),
            Doing::Call(call) => {
                let name = call.name();
                self.calls.extend(name.map(|name| (thread.role, name)));
                let activity = self.wait(thread.pid, call);
                if let Some(kept) = self.files.get_mut(&thread.tid) {
                    kept.last = Some((activity, name));
                }
                Some(activity)
            }
            Doing::Outside => self.outside(thread).map(Activity::Waiting),
            Doing::Gone => None,
        }
    }

    fn wait(&mut self, pid: u32, call: Call) -> Activity {
        match call.wait() {
            Wait::Futex { word, expected } => Activity::Futex(Some(Word {
                address: word,
                expected,
            })),
            Wait::Known(Kind::Futex) => Activity::Futex(None),
            Wait::Known(kind) => Activity::Waiting(kind),
            Wait::Descriptor(number) => Activity::Waiting(self.descriptor(pid, number)),
            Wait::Epoll(number) => Activity::Waiting(self.epoll(pid, number)),
        }
    }

    /// The kind of a wait outside system calls.
    fn outside(&self, thread: SampledThread) -> Option<Kind> {
        let stat = self.proc_fs.thread_stat(thread.pid, thread.tid).ok()?;
        let channel = match stat.state {
            'D' => self.proc_fs.wait_channel(thread.pid, thread.tid),
            _ => None,
        };
        Some(syscall::outside(stat.state, channel.as_deref()))
    }

    fn descriptor(&mut self, pid: u32, number: u32) -> Kind {
        self.kept((pid, number), DESCRIPTOR_KIND_VALID_NS, |proc_fs| {
            proc_fs.descriptor_kind(pid, number).unwrap_or(Kind::Other)
        })
    }

    fn epoll(&mut self, pid: u32, number: u32) -> Kind {
        self.kept((pid, number), EPOLL_KIND_VALID_NS, |proc_fs| {
            proc_fs.epoll_kind(pid, number).unwrap_or(Kind::Poll)
        })
    }

    /// The kind of a descriptor, read again where it was read longer ago than it is valid.
    fn kept(&mut self, of: (u32, u32), valid_ns: u64, read: impl Fn(&ProcFs) -> Kind) -> Kind {
        let now = clock::monotonic_ns();
        match self.descriptors.get(&of) {
            Some((kind, at_ns)) if now - at_ns < valid_ns => *kind,
            _ => {
                let kind = read(&self.proc_fs);
                self.descriptors.insert(of, (kind, now));
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
                .retain(|_, (_, at_ns)| now - *at_ns < EPOLL_KIND_VALID_NS);
        }
    }
}

/// The threads that wait for locks, or for others to wake them; of a Go program, whose threads say nothing of that, the goroutines.
fn waiters(
    observations: &[(SampledThread, Observation)],
    readings: &[(u32, GoReading)],
    roles: &BTreeMap<u32, usize>,
) -> Vec<Waiter> {
    let is_go = |pid| readings.iter().any(|(of, _)| *of == pid);
    let threads = observations.iter().filter_map(|(thread, observation)| {
        let waits = matches!(
            observation,
            Observation::Seen(
                Activity::Futex(_) | Activity::Waiting(Kind::FileLock | Kind::WakeUp)
            )
        );
        (waits && !is_go(thread.pid)).then_some(Waiter::Thread(*thread))
    });
    let goroutines = readings.iter().flat_map(|(pid, reading)| {
        let parked = reading.parked().iter();
        parked.map(|it| Waiter::Goroutine(roles[pid], *pid, *it))
    });
    threads.chain(goroutines).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// What was seen of a thread of this process.
    fn seen(activity: Activity) -> (SampledThread, Observation) {
        let tid = nix::unistd::gettid().as_raw() as u32;
        (of_own(tid), Observation::Seen(activity))
    }

    fn of_own(tid: u32) -> SampledThread {
        SampledThread {
            role: 0,
            pid: std::process::id(),
            tid,
            rests: false,
        }
    }

    #[test]
    fn who_rests_comes_behind_the_others_in_most_turns() {
        let thread = |tid, rests| {
            Waiter::Thread(SampledThread {
                rests,
                ..of_own(tid)
            })
        };
        let tids = |turn| {
            let mut waiting = [
                thread(1, true),
                thread(2, false),
                thread(3, true),
                thread(4, false),
            ];
            in_order(&mut waiting, turn);
            waiting.map(|it| it.tid().unwrap())
        };
        assert_eq!(tids(1), [2, 4, 3, 1]);
        assert_eq!(tids(3), [4, 2, 1, 3], "another one first");
        assert_eq!(tids(TURNS_FOR_RESTING), [1, 2, 3, 4], "as they come");
        in_order(&mut [], 3);
    }

    #[test]
    fn who_changes_the_address_space_is_left_alone_for_some_turns() {
        let own = std::process::id();
        let mut changing = Changing::default();
        changing.note(&[seen(Activity::Waiting(Kind::Disk))], 1);
        assert!(!changing.has(own));
        let last = 7;
        for turn in [2, last] {
            changing.note(&[seen(Activity::Waiting(Kind::Memory))], turn);
        }
        for turn in last..last + TURNS_AFTER_CHANGE {
            changing.note(&[seen(Activity::Running)], turn);
            assert!(changing.has(own) && !changing.has(own + 1), "{turn}");
        }
        changing.note(&[], last + TURNS_AFTER_CHANGE);
        assert!(!changing.has(own));
    }

    /// A thread of this process that waits for a lock is copied, but not while one changes the address space.
    #[test]
    fn no_stack_is_copied_of_who_changes_the_address_space() {
        let lock = Mutex::new(());
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            let held = lock.lock().unwrap();
            scope.spawn(|| {
                sender.send(nix::unistd::gettid().as_raw() as u32).unwrap();
                drop(lock.lock().unwrap());
            });
            let waiting = of_own(receiver.recv().unwrap());
            let mut reader = SyscallReader::new(ProcFs::default());
            let request = Request {
                threads: vec![waiting],
                stacks_ns: u64::MAX,
            };
            let captured = |reader: &mut SyscallReader| loop {
                let mut stacks = reader.sample(&request).stacks;
                // Before it waits nothing is tried, and while it is about to what is tried is torn.
                match stacks.pop().map(|(_, _, captured)| captured) {
                    None | Some(Captured::Torn) => thread::yield_now(),
                    Some(captured) => return captured,
                }
            };
            let first = captured(&mut reader);
            assert!(matches!(first, Captured::Wait(_)), "{first:?}");
            let turn = reader.turn;
            let changes = [seen(Activity::Waiting(Kind::Memory))];
            reader.changing.note(&changes, turn);
            for _ in 1..TURNS_AFTER_CHANGE {
                let left = captured(&mut reader);
                assert!(matches!(left, Captured::Skipped), "{left:?}");
            }
            let after = captured(&mut reader);
            assert!(after.number().is_some(), "{after:?}");
            drop(held);
        });
    }
}
