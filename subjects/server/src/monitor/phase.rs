//! Snapshots of all counters, and their difference between two times that a client marks: the
//! measured phase of a load.

use concurve_latch::Counts;
use concurve_reporter::{Reporter, ReporterError};

use crate::monitor::meter::{Reading, Spent, State};

/// All counters from the start until now. Taking a snapshot stops no thread: each counter is read
/// separately, so those of different threads are some µs apart.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub at_ns: u64,
    /// CPU time of the whole server by the kernel's account: including threads without a meter,
    /// excluding the processes that only supervise engines.
    pub cpu_ns: u64,
    /// The engines, by name.
    pub engines: Vec<(String, Reading)>,
    /// The I/O threads that are not engines.
    pub io_threads: Vec<(String, Reading)>,
    /// The disk thread, if there is one.
    pub disks: Vec<(String, Reading)>,
    pub latches: Vec<Counts>,
    /// Requests, and committed and aborted transactions.
    pub work: Vec<(&'static str, u64)>,
    /// Counts of the statement caches, if statements are served.
    pub statements: Vec<(&'static str, u64)>,
}

impl Snapshot {
    /// All threads and processes with a meter.
    pub fn threads(&self) -> impl Iterator<Item = &(String, Reading)> {
        let beside = self.io_threads.iter().chain(&self.disks);
        self.engines.iter().chain(beside)
    }
}

/// The last phase that a client has marked.
#[derive(Debug, Default)]
pub struct Phase {
    begin: Option<Snapshot>,
    end: Option<Snapshot>,
}

impl Phase {
    pub fn begin(&mut self, snapshot: Snapshot) {
        self.end = None;
        self.begin = Some(snapshot);
    }

    pub fn is_begun(&self) -> bool {
        self.begin.is_some()
    }

    pub fn end(&mut self, snapshot: Snapshot) {
        self.end = Some(snapshot);
    }

    /// Reports the counts of the phase, if it was begun and ended.
    pub fn report(&self, reporter: &Reporter) -> Result<(), ReporterError> {
        match (&self.begin, &self.end) {
            (Some(begin), Some(end)) => report(begin, end, reporter),
            _ => Ok(()),
        }
    }
}

/// If an engine died in the phase, its times are unknown, and so is every sum or mean that contains
/// them: these figures are left out. Counts are complete, because their memory outlives engines.
fn report(begin: &Snapshot, end: &Snapshot, reporter: &Reporter) -> Result<(), ReporterError> {
    let wall_ns = end.at_ns - begin.at_ns;
    let engines = spent(&begin.engines, &end.engines);
    let io_threads = spent(&begin.io_threads, &end.io_threads);
    let disks = spent(&begin.disks, &end.disks);
    reporter.indicator("phase_seconds", seconds(wall_ns), Some("s"))?;
    let is_whole = engines.iter().all(|(_, it)| it.is_some());
    let cpu_seconds = is_whole.then(|| seconds(end.cpu_ns.saturating_sub(begin.cpu_ns)));
    work(begin, end, cpu_seconds, reporter)?;
    for ((name, before), (_, after)) in begin.statements.iter().zip(&end.statements) {
        let name = format!("statements_{name}");
        reporter.indicator(&name, after.saturating_sub(*before) as f64, None)?;
    }
    let all = engines.iter().chain(&io_threads).chain(&disks);
    busy_threads(all, wall_ns, reporter)?;
    times("engine", &engines, reporter)?;
    times("io_thread", &io_threads, reporter)?;
    times("disk_thread", &disks, reporter)?;
    latches(begin, end, reporter)
}

/// An engine or another thread by name, and its times if they are known.
type Worker = (String, Option<Spent>);

fn spent(begin: &[(String, Reading)], end: &[(String, Reading)]) -> Vec<Worker> {
    let pairs = begin.iter().zip(end);
    pairs
        .map(|((name, before), (_, after))| (name.clone(), after.since(before)))
        .collect()
}

/// The work done, in total and per second of CPU time of the whole server.
fn work(
    begin: &Snapshot,
    end: &Snapshot,
    cpu_seconds: Option<f64>,
    reporter: &Reporter,
) -> Result<(), ReporterError> {
    if let Some(cpu_seconds) = cpu_seconds {
        reporter.indicator("phase_cpu_seconds", cpu_seconds, Some("s"))?;
    }
    let cpu_seconds = cpu_seconds.filter(|it| *it > 0.0);
    for ((name, before), (_, after)) in begin.work.iter().zip(&end.work) {
        let done = after.saturating_sub(*before) as f64;
        reporter.indicator(&format!("phase_{name}"), done, None)?;
        if let Some(cpu_seconds) = cpu_seconds.filter(|_| *name != "aborts") {
            let name = format!("{name}_per_cpu_second");
            reporter.indicator(&name, done / cpu_seconds, Some("1/s"))?;
        }
    }
    Ok(())
}

/// The mean number of busy threads by their own clocks, to be compared with the number of CPUs that
/// the server used by the kernel's account.
fn busy_threads<'a>(
    mut workers: impl Iterator<Item = &'a Worker>,
    wall_ns: u64,
    reporter: &Reporter,
) -> Result<(), ReporterError> {
    let busy_ns = workers.try_fold(0, |sum, (_, it)| Some(sum + it.as_ref()?.of(State::Busy)));
    match busy_ns {
        Some(ns) => {
            let mean = ns as f64 / wall_ns.max(1) as f64;
            reporter.indicator("busy_threads_mean", mean, None)
        }
        None => Ok(()),
    }
}

/// Shares of the time by both meters, of each worker and on average.
fn times(kind: &str, workers: &[Worker], reporter: &Reporter) -> Result<(), ReporterError> {
    for state in State::ALL {
        let name = format!("{kind}_{}_share", state.name());
        shares(&name, workers, |it| it.of(state), reporter)?;
    }
    shares(
        &format!("{kind}_cpu_share"),
        workers,
        |it| it.cpu_ns,
        reporter,
    )
}

/// The share of each worker's own time, because the readings are taken one after the other; and the
/// mean of the shares, if all are known.
fn shares(
    name: &str,
    workers: &[Worker],
    part_ns: impl Fn(&Spent) -> u64,
    reporter: &Reporter,
) -> Result<(), ReporterError> {
    let share = |it: &Spent| part_ns(it) as f64 / it.whole_ns().max(1) as f64;
    let each = || workers.iter().map(|(_, spent)| spent.as_ref().map(share));
    for ((worker, _), share) in workers.iter().zip(each()) {
        if let Some(share) = share {
            reporter.worker_indicator(name, share, None, worker)?;
        }
    }
    let known: Option<Vec<f64>> = each().collect();
    match known {
        Some(known) if !known.is_empty() => {
            let mean = known.iter().sum::<f64>() / known.len() as f64;
            reporter.indicator(name, mean, None)
        }
        _ => Ok(()),
    }
}

fn latches(begin: &Snapshot, end: &Snapshot, reporter: &Reporter) -> Result<(), ReporterError> {
    let mut all = LatchCounts::default();
    for after in &end.latches {
        let before = begin.latches.iter().find(|it| it.name == after.name);
        let counts = LatchCounts::between(before, after);
        all.add(&counts);
        let class = format!("latch_{}", word(&after.name));
        reporter.indicator(&format!("{class}_spins"), counts.spins as f64, None)?;
        counts.report_contention(&class, reporter)?;
    }
    all.report(reporter)
}

/// The name of a class of latches as a part of the name of an indicator.
fn word(name: &str) -> String {
    let parts = name.split(|it: char| !it.is_ascii_alphanumeric());
    Vec::from_iter(parts.filter(|it| !it.is_empty())).join("_")
}

/// What happened to latches in the phase.
#[derive(Default)]
struct LatchCounts {
    acquisitions: u64,
    waits: u64,
    spins: u64,
    sleeps: u64,
}

impl LatchCounts {
    fn between(before: Option<&Counts>, after: &Counts) -> Self {
        let since = |count: fn(&Counts) -> u64| {
            let before = before.map_or(0, count);
            count(after).saturating_sub(before)
        };
        Self {
            acquisitions: since(|it| it.acquisitions),
            waits: since(|it| it.waits),
            spins: since(|it| it.spins),
            sleeps: since(|it| it.sleeps),
        }
    }

    fn add(&mut self, more: &Self) {
        self.acquisitions += more.acquisitions;
        self.waits += more.waits;
        self.spins += more.spins;
        self.sleeps += more.sleeps;
    }

    fn report(&self, reporter: &Reporter) -> Result<(), ReporterError> {
        let counts = [
            ("acquisitions", self.acquisitions),
            ("waits", self.waits),
            ("spins", self.spins),
            ("sleeps", self.sleeps),
        ];
        for (name, count) in counts {
            reporter.indicator(&format!("latch_{name}"), count as f64, None)?;
        }
        self.report_contention("latch", reporter)
    }

    /// The share of acquisitions that had to wait, as ASE reports it.
    fn report_contention(&self, prefix: &str, reporter: &Reporter) -> Result<(), ReporterError> {
        if self.acquisitions == 0 {
            return Ok(());
        }
        let contention = self.waits as f64 / self.acquisitions as f64;
        reporter.indicator(&format!("{prefix}_contention"), contention, None)
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
