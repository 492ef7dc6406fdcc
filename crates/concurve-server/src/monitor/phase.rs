//! What was counted between two moments that a client names: the measured phase of a load, without
//! what comes before and after it.

use concurve_latch::Counts;
use concurve_wire::reporter::{Reporter, ReporterError};

use crate::hall::Hall;
use crate::monitor::meter::{Reading, State};
use crate::monitor::snapshot::Snapshot;

/// The last phase that a client has marked.
#[derive(Debug, Default)]
pub struct Phase {
    begin: Option<Snapshot>,
    end: Option<Snapshot>,
}

impl Phase {
    pub fn begin(&mut self, hall: &Hall) {
        self.end = None;
        self.begin = Some(Snapshot::take(hall));
    }

    /// False: none was begun.
    pub fn end(&mut self, hall: &Hall) -> bool {
        if self.begin.is_some() {
            self.end = Some(Snapshot::take(hall));
        }
        self.begin.is_some()
    }

    /// Tells what was counted in it, if it was begun and ended.
    pub fn report(&self, reporter: &Reporter) -> Result<(), ReporterError> {
        match (&self.begin, &self.end) {
            (Some(begin), Some(end)) => report(begin, end, reporter),
            _ => Ok(()),
        }
    }
}

fn report(begin: &Snapshot, end: &Snapshot, reporter: &Reporter) -> Result<(), ReporterError> {
    let wall_ns = end.at_ns - begin.at_ns;
    let cpu_seconds = seconds(end.cpu_ns.saturating_sub(begin.cpu_ns));
    reporter.indicator("phase_seconds", seconds(wall_ns), Some("s"))?;
    reporter.indicator("phase_cpu_seconds", cpu_seconds, Some("s"))?;
    for ((name, before), (_, after)) in begin.work.iter().zip(&end.work) {
        let done = after.saturating_sub(*before) as f64;
        reporter.indicator(&format!("phase_{name}"), done, None)?;
        if cpu_seconds > 0.0 && *name != "aborts" {
            let name = format!("{name}_per_cpu_second");
            reporter.indicator(&name, done / cpu_seconds, Some("1/s"))?;
        }
    }
    for ((name, before), (_, after)) in begin.statements.iter().zip(&end.statements) {
        let name = format!("statements_{name}");
        reporter.indicator(&name, after.saturating_sub(*before) as f64, None)?;
    }
    busy_threads(begin, end, wall_ns, reporter)?;
    times("engine", &begin.engines, &end.engines, reporter)?;
    times("io_thread", &begin.io_threads, &end.io_threads, reporter)?;
    times("disk_thread", &begin.disks, &end.disks, reporter)?;
    latches(begin, end, reporter)
}

/// How many engines and threads beside them were busy on the average, by their own clocks: what stands beside
/// the CPUs that the server used by the kernel's account.
fn busy_threads(
    begin: &Snapshot,
    end: &Snapshot,
    wall_ns: u64,
    reporter: &Reporter,
) -> Result<(), ReporterError> {
    let busy_ns = |it: &Snapshot| -> u64 {
        let busy = it.threads().map(|(_, reading)| reading.of(State::Busy));
        busy.sum()
    };
    let busy = busy_ns(end).saturating_sub(busy_ns(begin)) as f64 / wall_ns.max(1) as f64;
    reporter.indicator("busy_threads_mean", busy, None)
}

/// Shares of the time, of each and on the average, by both meters.
fn times(
    kind: &str,
    begin: &[(String, Reading)],
    end: &[(String, Reading)],
    reporter: &Reporter,
) -> Result<(), ReporterError> {
    let pairs = || begin.iter().zip(end);
    // Readings are taken one after the other: each engine has a time of its own between its two.
    let share = |ns: u64, before: &Reading, after: &Reading| {
        let whole_ns = after.whole_ns().saturating_sub(before.whole_ns());
        ns as f64 / whole_ns.max(1) as f64
    };
    for state in State::ALL {
        let name = format!("{kind}_{}_share", state.name());
        let each = pairs().map(|((worker, before), (_, after))| {
            // Of one that died in this state the last moments are not known.
            let ns = after.of(state).saturating_sub(before.of(state));
            (worker, Some(share(ns, before, after)))
        });
        shares(&name, each.collect(), reporter)?;
    }
    let each = pairs().map(|((worker, before), (_, after))| {
        let cpu_ns = after.cpu_ns_since(before);
        (worker, cpu_ns.map(|ns| share(ns, before, after)))
    });
    shares(&format!("{kind}_cpu_share"), each.collect(), reporter)
}

/// Their mean stands for all, if it is known of each.
fn shares(
    name: &str,
    each: Vec<(&String, Option<f64>)>,
    reporter: &Reporter,
) -> Result<(), ReporterError> {
    for (worker, share) in &each {
        if let Some(share) = share {
            reporter.worker_indicator(name, *share, None, worker)?;
        }
    }
    let known: Option<Vec<f64>> = each.iter().map(|(_, share)| *share).collect();
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

/// A name of a class as a part of an indicator's.
fn word(name: &str) -> String {
    let parts = name.split(|it: char| !it.is_ascii_alphanumeric());
    Vec::from_iter(parts.filter(|it| !it.is_empty())).join("_")
}

/// What happened to latches meanwhile.
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

    /// The share of acquisitions that had to wait, as ASE shows it.
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
