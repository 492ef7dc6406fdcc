//! What the runner measured: one record a trial.
//!
//! A reading that could not be taken is left out, and `absent` of the same object says why
//! under the same name. A zero is always a measured zero.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::spec::{Controls, Policy};
use concurve_reporter::line::{HistogramLine, IndicatorLine};

/// Names of readings that could not be taken, each with its reason.
pub type Absent = BTreeMap<String, String>;

/// The raw result of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    pub format: u32,
    pub trial: String,
    /// Version of the runner that wrote the record.
    pub runner: String,
    /// Wall-clock time at the first release, since the epoch.
    pub started_unix_ns: u64,
    pub outcome: Outcome,
    /// From the first release to the last exit of an `exit` role.
    pub wall_ns: u64,
    /// In the order of the spec.
    pub roles: Vec<RoleRecord>,
    pub machine: MachineRecord,
    pub instrument: InstrumentRecord,
}

/// How the trial ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub kind: OutcomeKind,
    /// Role that caused an outcome other than `ok`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// What failed and where, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// Every `exit` role exited with 0, every `serve` role lived until it was stopped.
    Ok,
    /// The program could not be executed.
    ExecFailed,
    /// A control was refused or read back differently.
    ControlRefused,
    /// A role exited with another code than 0, by a signal, or (serving) too early.
    ProgramFailed,
    /// A role exited or the limit passed before `{"ready":true}` came.
    NotReady,
    /// The time limit passed.
    TimedOut,
    /// The runner was asked to stop (SIGINT or SIGTERM).
    Interrupted,
}

/// One role of the trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoleRecord {
    pub name: String,
    /// Absent if the role never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<EndedBy>,
    /// Release (go-ahead to exec) relative to the trial's first release.
    pub released_ns: u64,
    /// From release to the exit of the role's first process.
    pub wall_ns: u64,
    /// As read back from the kernel after they were set.
    pub controls: GrantedControls,
    /// The whole process tree of the role over its whole life.
    pub usage: Usage,
    pub threads: ThreadsRecord,
    /// What its threads were seen doing over the whole life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    #[serde(default)]
    pub phases: Vec<PhaseRecord>,
    #[serde(default)]
    pub indicators: Vec<IndicatorLine>,
    #[serde(default)]
    pub histograms: Vec<HistogramLine>,
    #[serde(default)]
    pub facts: BTreeMap<String, serde_json::Value>,
    /// Lines of the report channel that were not understood (bounded).
    #[serde(default)]
    pub report_errors: Vec<ReportError>,
    /// Processes of the tree that outlived the first one and were killed then.
    #[serde(default)]
    pub stragglers_killed: u64,
    /// The quota of CPU time that its control groups have, if they have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<CpuQuota>,
    /// What the runtime of its program says of its own threads of execution, if it has such a runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeRecord>,
    /// Where in its program its threads were seen waiting for locks, of those that were sampled for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sites: Option<SitesRecord>,
    /// Where in its programs its threads ran, by samples in user mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot: Option<HotRecord>,
    /// What its threads did in the course of the trial, where the trial asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_timelines: Option<ThreadTimelines>,
    pub stdout: Output,
    pub stderr: Output,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: Absent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

/// Samples of the goroutines of a Go program. Counts are of goroutines in all readings; of a role that serves, in those
/// while one runs that ends by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeRecord {
    /// `go`.
    pub name: String,
    pub readings: u64,
    /// Readings in which the collector marked.
    pub collecting: u64,
    /// Goroutines that ran or could run.
    pub running: u64,
    /// Goroutines in system calls.
    pub in_calls: u64,
    /// Goroutines that waited, by the runtime's words for the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waiting: BTreeMap<String, u64>,
    /// The most that may run at once in a process (`GOMAXPROCS`); absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u32>,
}

/// Where in a program its threads were seen waiting for locks: by the tops of their stacks, which were copied
/// without stopping them. Counts are of readings, of one thread at one moment each.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SitesRecord {
    /// Those whose place in the program is known.
    pub readings: u64,
    /// Those whose stack led to no function of the program.
    pub unknown: u64,
    /// Those that were dropped, because the thread ran meanwhile.
    pub torn: u64,
    /// Those that were left out: for what sampling may cost, or because the program changed its address space, and
    /// might have had to wait.
    pub skipped: u64,
    /// Most readings first; bounded, so they may be fewer than `readings`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listed: Vec<SiteRecord>,
}

/// What the threads of a role did in each of some intervals, the first of which begins with the trial, and each
/// other one where the one before it ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadTimelines {
    /// The end of each interval, relative to the first release.
    pub ends_ns: Vec<u64>,
    /// How many threads samples saw.
    pub threads: u64,
    /// Those that ran or waited for a CPU longest, in the order in which they were seen first; bounded.
    pub listed: Vec<ThreadTimeline>,
}

/// What a thread did in the intervals from the first to the last one in which samples saw it. What is neither
/// `running` nor `runnable` was blocked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadTimeline {
    pub tid: u32,
    /// The first of these intervals, from 0 on.
    pub first: u64,
    /// On a CPU, in percent of each interval.
    pub running: Vec<u8>,
    /// Waiting for a CPU, in percent of each interval.
    pub runnable: Vec<u8>,
    /// A letter for each interval: what most samples saw it wait for, `-` where none saw it wait.
    pub waits: String,
    /// Where most samples saw it wait for a lock, by the place in `sites.listed`; -1 where none did, or
    /// elsewhere. Empty if all are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<i64>,
}

/// A place in a program where threads waited for a lock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SiteRecord {
    /// What is waited at: `mutex`, `reader_writer_lock`, `condition`, `semaphore`, `barrier`, `join` (the end of
    /// another thread), `file_lock` or `other`.
    pub primitive: String,
    /// The system call; of a goroutine, what the runtime says that it waits for.
    pub call: String,
    /// The function of a library that was called there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The function that called it; absent if the program has no symbols.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Source file and line of the call; absent without debug information.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The program or library that it is in, and the address of the call in it: hexadecimal, with `0x`.
    pub module: String,
    pub offset: String,
    /// How it was found: `cfi`, by call frame information alone, or as the runtime says it; `scan_exact`, behind a
    /// call of the very function on the stack; `scan_weak`, behind another call.
    pub found: String,
    /// What said it of itself, for a language that is interpreted: `cpython`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// The variable that is the lock, or that it is a part of; `GIL` is the interpreter lock of Python.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    pub readings: u64,
    /// Different threads that were seen there.
    pub threads: u64,
    /// Those that were seen there most, and in how many readings; bounded. Goroutines have numbers
    /// of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiters: Vec<ThreadReadings>,
    /// In how many of the readings the lock said who had it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<u64>,
    /// The threads that had it, and in how many readings; most readings first, bounded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<ThreadReadings>,
    /// The functions that called this one, the nearest first; bounded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<String>,
}

/// A thread, and in how many readings it was seen so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadReadings {
    pub tid: u32,
    pub readings: u64,
}

/// Where in its programs the threads of a role ran in user mode: by samples that a clock of the kernel takes, one
/// for each 5 ms of CPU time of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HotRecord {
    pub samples: u64,
    /// Those of `samples` in no file that is known, such as code that was compiled at run time.
    pub unknown: u64,
    /// Records that the kernel dropped because they came too fast.
    pub lost: u64,
    /// The samples are of one part of 2^`halved` of the time: where threads switch often, the clock of the samples
    /// would slow them.
    #[serde(skip_serializing_if = "is_none_halved")]
    pub halved: u32,
    /// Most samples first; bounded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<HotFileRecord>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub listed: Vec<HotFunctionRecord>,
    /// Most samples first, bounded; only where some are in loops that wait.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<HotThreadRecord>,
}

/// A thread with its samples in files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotThreadRecord {
    pub tid: u32,
    pub samples: u64,
    /// Those in loops in which a thread does nothing but wait for others.
    #[serde(default)]
    pub waiting: u64,
}

/// A program or a library that threads ran in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotFileRecord {
    /// Its name without folders.
    pub name: String,
    pub samples: u64,
}

/// A function that threads ran in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotFunctionRecord {
    /// In a runtime of OpenMP, the function of it that was called. Absent if the file has no symbols there, or the
    /// samples are too few to read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    pub file: String,
    pub samples: u64,
    /// Those of the first threads of processes.
    #[serde(default)]
    pub first: u64,
    /// Those in loops in which a thread does nothing but wait for others, by their code.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiting: u64,
}

fn is_none_halved(halved: &u32) -> bool {
    *halved == 0
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The quota of CPU time of the control group that held a role back longest, and what it did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuQuota {
    /// The CPUs' worth of time that it allows.
    pub cpus: f64,
    /// Periods in which the group had something to run.
    pub periods: u64,
    /// Periods in which it used up its quota.
    pub throttled: u64,
    /// How long the group was held back, summed over CPUs.
    pub throttled_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The program exited.
    Itself,
    /// A serving role was stopped because the others were done.
    Stopped,
    /// The runner killed it: time limit, interruption, or failure of another role.
    Killed,
}

/// What was asked for and what the kernel granted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrantedControls {
    pub requested: Controls,
    /// CPUs allowed, from `/proc/PID/status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Vec<u32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
}

/// Resources used, by a tree, a phase or a thread. Times in ns, memory in bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// User plus system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_ns: Option<u64>,
    /// Runnable but waiting for a CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_queue_ns: Option<u64>,
    /// Times a thread was put on a CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voluntary_switches: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub involuntary_switches: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migrations: Option<u64>,
    /// Misses of the CPU's caches; only where the trial asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_misses: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor_faults: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub major_faults: Option<u64>,
    /// Greatest resident memory: of the largest single process, from `wait4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_bytes_max: Option<u64>,
    /// Greatest sum over the tree that a sample saw; only for trees of several processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_bytes_tree_max: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_inputs: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_outputs: Option<u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: Absent,
}

/// The threads of a role's tree, the first threads of its processes included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadsRecord {
    /// Threads that ever lived in the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Greatest number alive at once. If `absent` has a reason for it, a lower bound: the most
    /// that one sample saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<u64>,
    /// Processes that ever lived in the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// CPU time of all threads together, by their own accounts; to be held against `usage.cpu_ns`.
    /// It lacks the end of each exit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// Up to `threads_listed_max` threads, those with most CPU time first.
    #[serde(default)]
    pub listed: Vec<ThreadRecord>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: Absent,
}

/// One thread, as last seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadRecord {
    pub tid: u32,
    pub pid: u32,
    /// At most 15 characters, as the kernel keeps it.
    pub name: String,
    /// Where the final figures come from.
    pub source: ThreadSource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Vec<u32>>,
    /// From its birth to its death.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lived_ns: Option<u64>,
    pub usage: Usage,
    /// What it was seen doing, without the list of futex words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: Absent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadSource {
    /// The kernel's account at the thread's exit: exact.
    Exit,
    /// Its last sample: a lower bound.
    Sample,
}

/// A phase of a role that its program marked, or a client of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseRecord {
    pub name: String,
    /// The role that marked the phase, if not this one: a client that this serving role worked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marked_by: Option<String>,
    /// Relative to the trial's first release.
    pub begin_ns: u64,
    pub wall_ns: u64,
    /// Difference of the probes between its edges.
    pub usage: Usage,
    /// Maximum delay from an edge until the probes were read: `usage` is off by the usage during
    /// that delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_ns: Option<u64>,
    /// Greatest number of threads alive at once; absent where `threads.peak` is a lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads_peak: Option<u64>,
    /// What the role's threads were seen doing between its edges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    /// The program exited, or was killed, inside the phase.
    #[serde(default)]
    pub open: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: Absent,
}

/// What threads were doing at the times of the samples. Counts are of readings, of one thread in
/// one sample each: `readings` is the sum of `running` and the kinds of waiting after it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Waits {
    pub readings: u64,
    /// On a CPU, or runnable.
    pub running: u64,
    /// Of these: no other thread of the role was running, and another one waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone: Option<u64>,
    /// In a futex call that waits: a lock, a condition, a join.
    pub futex: u64,
    /// Synchronising or accessing a file or a block device, or in an uninterruptible wait outside
    /// system calls, such as a page fault (that is not known to wait for the address space).
    pub disk: u64,
    /// Sending, receiving, accepting, connecting; reading or writing a socket.
    pub network: u64,
    /// Waiting for one of several descriptors, or for io_uring.
    pub poll: u64,
    /// Reading or writing a pipe, a FIFO, a terminal or an eventfd.
    pub pipe: u64,
    pub sleep: u64,
    /// Waiting for a child process.
    pub child: u64,
    /// Waiting for a lock on a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_lock: Option<u64>,
    /// Changing the address space (mmap, munmap, mprotect, brk), or in a page fault that waits for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// In an epoll instance that watches no socket, but an eventfd or a signalfd, by which another thread or
    /// process wakes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake_up: Option<u64>,
    pub other: u64,
    /// Readings by the name of the system call, of calls that change the address space, files' names and
    /// locks, and tasks, or write to files, and of io_uring_enter; of a whole role.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<String, u64>,
    /// Different futex words that threads were seen waiting at.
    pub futex_words: u64,
    /// The words that were seen most, most first; bounded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub futexes: Vec<FutexWaits>,
}

/// A futex word, and how often threads were seen waiting there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FutexWaits {
    /// Hexadecimal, with `0x`.
    pub address: String,
    /// Whose address it is; only in roles of several processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    pub readings: u64,
    /// Different threads that were seen there.
    pub threads: u64,
    /// Different values above 2 that they expected there, up to 32, where they wait as at a mutex (which has
    /// 2) or at a barrier (one a round).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportError {
    /// Number of the line on the channel, from 1.
    pub line: u64,
    pub message: String,
    pub excerpt: String,
}

/// A bounded copy of an output stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// Bytes written in all.
    pub bytes: u64,
    /// The first part (bytes that are not UTF-8 replaced).
    pub head: String,
    /// The last part, empty if `head` holds everything.
    pub tail: String,
    /// Bytes between them that were not kept.
    pub dropped: u64,
}

/// The machine from the first release to the last exit: differences, all CPUs together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineRecord {
    /// Online CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Not idle and not stolen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_ns: Option<u64>,
    /// The same of each CPU, by its number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub busy_ns_by_cpu: BTreeMap<u32, u64>,
    /// The same in the course of the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_timeline: Option<CpuTimeline>,
    /// Taken by the hypervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal_ns: Option<u64>,
    /// Busy time that neither the roles nor the runner used; coarse: see `tick_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_cpu_ns: Option<u64>,
    /// The part of it that living processes of low priority used: above nice 0, or scheduled when
    /// a CPU is idle only. Read if others used much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_low_priority_ns: Option<u64>,
    /// The processes that used most of it, most first; those that ended before the trial did are not
    /// seen. Read if others used much.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_processes: Vec<ForeignProcess>,
    /// Granularity of the times above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick_ns: Option<u64>,
    /// Mean over samples of the highest clock frequency of a CPU, where the kernel knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub khz: Option<u64>,
    /// How fast CPUs ran a fixed loop right before the first release, of two at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub speed_before: Vec<CoreSpeed>,
    /// The same right after the last exit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub speed_after: Vec<CoreSpeed>,
    /// Pressure stall totals, keyed `cpu_some_ns`, `io_some_ns`, `io_full_ns`, `memory_some_ns`,
    /// `memory_full_ns`.
    #[serde(default)]
    pub psi: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: Absent,
}

/// How fast a CPU ran two fixed loops. What shares its core slows independent instructions; the clock
/// frequency slows both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreSpeed {
    pub cpu: u32,
    /// Instructions in a microsecond of CPU time, each of which needs the result of the one before.
    pub chained_per_us: u32,
    /// Independent instructions in a microsecond of CPU time.
    pub independent_per_us: u32,
}

/// How busy each CPU was in each of some intervals, the first of which begins with the trial, and each
/// other one where the one before it ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTimeline {
    /// The end of each interval, relative to the first release.
    pub ends_ns: Vec<u64>,
    /// Busy time in each interval, in ticks of `tick_ns`, by the number of the CPU: those that were
    /// online all the time.
    pub busy_ticks: BTreeMap<u32, Vec<u64>>,
}

/// A process outside the trial that used the CPUs meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignProcess {
    pub pid: u32,
    /// Name of its program, at most 15 characters.
    pub name: String,
    pub nice: i32,
    /// During the trial.
    pub cpu_ns: u64,
}

/// What measuring itself took and how fine it was.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct InstrumentRecord {
    /// Samples of `/proc` that were taken.
    pub samples: u64,
    /// CPU time of the runner from the first release to the last exit.
    pub runner_cpu_ns: u64,
    /// CPU time of it that went into sampling.
    pub sampling_cpu_ns: u64,
    /// The part of it that went into copying stacks; absent if none was copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sites_cpu_ns: Option<u64>,
    /// Mean time between samples; absent with fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_interval_ns: Option<u64>,
    /// Smallest step of the clock that was seen.
    pub clock_step_ns: u64,
    /// Sources used: `taskstats`, `perf`, `schedstat`, `psi`, …
    pub sources: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: Absent,
}
