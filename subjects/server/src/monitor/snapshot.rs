//! All counters at one moment.

use std::sync::atomic::Ordering::Relaxed;

use concurve_clock::{monotonic_ns, process_cpu_ns};
use concurve_latch::Counts;

use crate::hall::Hall;
use crate::monitor::meter::{Meter, Reading};
use crate::settings::Engines;

/// What was counted from the start until now. Whoever takes one stops nobody: each counter is read
/// by itself, so those of different threads are some µs apart.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub at_ns: u64,
    /// CPU time of the whole server by the kernel's account: with threads that no meter has, without
    /// the processes that only keep others.
    pub cpu_ns: u64,
    /// Who executes requests, by name.
    pub engines: Vec<(String, Reading)>,
    /// Who only reads, parses and answers.
    pub io_threads: Vec<(String, Reading)>,
    /// Who only makes durable what engines executed.
    pub disks: Vec<(String, Reading)>,
    pub latches: Vec<Counts>,
    /// What was done.
    pub work: Vec<(&'static str, u64)>,
    /// What happened to statements, where they are served.
    pub statements: Vec<(&'static str, u64)>,
}

impl Snapshot {
    pub fn take(hall: &Hall) -> Self {
        let engines = read("engine", &hall.meters.engines);
        Self {
            at_ns: monotonic_ns(),
            cpu_ns: cpu_ns(hall, &engines),
            engines,
            io_threads: read("io", &hall.meters.io_threads),
            disks: read("disk", &hall.meters.disks),
            latches: concurve_latch::counts(),
            work: work(hall),
            statements: statements(hall),
        }
    }

    /// Everybody who has a meter.
    pub fn threads(&self) -> impl Iterator<Item = &(String, Reading)> {
        let beside = self.io_threads.iter().chain(&self.disks);
        self.engines.iter().chain(beside)
    }
}

/// Of this process, or of all engines that are there if they are processes.
fn cpu_ns(hall: &Hall, engines: &[(String, Reading)]) -> u64 {
    match hall.settings.engines {
        Engines::Threads => process_cpu_ns(),
        Engines::Processes => engines.iter().filter_map(|(_, it)| it.cpu_ns).sum(),
    }
}

fn read(kind: &str, meters: &[Meter]) -> Vec<(String, Reading)> {
    let numbered = meters.iter().enumerate();
    numbered
        .map(|(at, meter)| (format!("{kind}-{}", at + 1), meter.read()))
        .collect()
}

fn statements(hall: &Hall) -> Vec<(&'static str, u64)> {
    let Some(service) = &hall.statements else {
        return Vec::new();
    };
    let counters = service.statements.counters();
    vec![
        ("cached", counters.cached),
        ("dropped", counters.dropped),
        ("found", counters.found),
        ("compiled", counters.compiled),
        ("exhausted", counters.exhausted),
    ]
}

fn work(hall: &Hall) -> Vec<(&'static str, u64)> {
    let requests = hall.per_thread.iter().map(|it| it.requests.load(Relaxed));
    let mut work = vec![("requests", requests.sum())];
    if let Some(records) = &hall.records {
        let statistics = records.engine.statistics();
        work.push(("transactions", statistics.commits));
        work.push(("aborts", statistics.aborts));
    }
    work
}
