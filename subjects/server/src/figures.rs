//! The figures of the whole server: for INFO, for the report, and for the measured phase.

use std::sync::atomic::Ordering::Relaxed;

use concurve_clock::{monotonic_ns, process_cpu_ns};
use crossbeam_utils::CachePadded;

use crate::monitor::meter::{Meter, Reading};
use crate::monitor::phase::Snapshot;
use crate::net::incidents::Incident;
use crate::options::{EngineKind, name_of};
use crate::services::Services;
use crate::state::SharedState;
use crate::statements::StatementService;

/// Reads all counters.
pub fn snapshot(state: &SharedState) -> Snapshot {
    let meters = &state.monitoring.meters;
    let engines = read("engine", &meters.engines);
    Snapshot {
        at_ns: monotonic_ns(),
        cpu_ns: cpu_ns(state.options.threads.engine_kind(), &engines),
        engines,
        io_threads: read("io", &meters.io_threads),
        disks: read("disk", &meters.disks),
        latches: concurve_latch::counts(),
        work: work(state.network.requests(), &state.services),
        statements: state
            .services
            .statements()
            .map_or_else(Vec::new, statement_counts),
    }
}

/// CPU time of this process, or of all running engines if they are processes.
fn cpu_ns(kind: EngineKind, engines: &[(String, Reading)]) -> u64 {
    match kind {
        EngineKind::Threads => process_cpu_ns(),
        EngineKind::Processes => engines.iter().filter_map(|(_, it)| it.cpu_ns).sum(),
    }
}

fn read(kind: &str, meters: &[CachePadded<Meter>]) -> Vec<(String, Reading)> {
    let numbered = meters.iter().enumerate();
    numbered
        .map(|(at, meter)| (format!("{kind}-{}", at + 1), meter.read()))
        .collect()
}

fn statement_counts(service: &StatementService) -> Vec<(&'static str, u64)> {
    let counters = service.statements.counters();
    vec![
        ("cached", counters.cached),
        ("dropped", counters.dropped),
        ("found", counters.found),
        ("compiled", counters.compiled),
        ("exhausted", counters.exhausted),
    ]
}

/// What has a limit: how much of it is in use now, and how much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Utilisation {
    pub name: &'static str,
    pub used: u64,
    pub size: u64,
}

/// How full the caches of the service are, or its lock table: a section of INFO.
pub fn utilisations(services: &Services) -> Vec<Utilisation> {
    let mut found = Vec::new();
    let mut add = |name, used, size| found.push(Utilisation { name, used, size });
    if let Some(service) = services.statements() {
        let pages = service.statements.pages();
        let used = pages.saturating_sub(service.statements.free_pages());
        add("procedure cache", used as u64, pages as u64);
    }
    match services.records() {
        Some(records) => {
            let (pages, room) = records.engine.cached_pages();
            add("record cache", pages as u64, room as u64);
        }
        None => {
            let (locks, capacity) = services.locks.used_and_capacity();
            add("lock table", locks, capacity);
        }
    }
    found
}

fn work(requests: u64, services: &Services) -> Vec<(&'static str, u64)> {
    let mut work = vec![("requests", requests)];
    if let Some(records) = services.records() {
        let statistics = records.engine.statistics();
        work.push(("transactions", statistics.commits));
        work.push(("aborts", statistics.aborts));
    }
    work
}

/// The options of the server: a section of INFO.
pub fn server_figures(state: &SharedState) -> Vec<(&'static str, String)> {
    let (options, network) = (&state.options, &state.network);
    let threads = options.threads;
    let requests = network.requests_per_io_thread();
    let memory = concurve_engines::memory::usage();
    let memory_used = memory.map_or(0, |it| it.used_bytes);
    vec![
        // Redis clients expect it.
        ("redis_version", "7.0.0".to_owned()),
        ("concurve_version", env!("CARGO_PKG_VERSION").to_owned()),
        ("process_id", std::process::id().to_string()),
        ("tcp_port", state.port.to_string()),
        ("service", name_of(options.service)),
        ("engines", name_of(threads.engine_kind())),
        ("engine_count", threads.engines().to_string()),
        ("generation", state.generation.to_string()),
        (
            "engine_deaths",
            state.engine_deaths.load(Relaxed).to_string(),
        ),
        ("shared_memory", options.shared_memory_bytes.to_string()),
        ("shared_memory_used", memory_used.to_string()),
        ("execution", name_of(threads.execution())),
        ("replies", name_of(threads.replies())),
        ("latching", name_of(options.latching)),
        ("idle", options.idle.to_string()),
        ("io_threads", threads.io_threads().to_string()),
        ("io_threads_active", network.active_io_threads().to_string()),
        ("requests_per_io_thread", format!("{requests:?}")),
        ("connected_clients", network.connected().to_string()),
        (
            "total_commands_processed",
            requests.iter().sum::<u64>().to_string(),
        ),
        ("keys", state.services.keys.leases.keys().to_string()),
    ]
}

/// The clients, and how often they met a limit: a section of INFO.
pub fn client_figures(state: &SharedState) -> Vec<(&'static str, u64)> {
    let (options, network) = (&state.options, &state.network);
    let (clients, incidents) = (&network.clients, &network.clients.incidents);
    let mut figures = vec![
        ("maxclients", clients.max),
        ("connected_clients_peak", clients.peak.load(Relaxed)),
        ("clients_before_login", network.newcomers()),
        ("total_connections_received", clients.accepted.load(Relaxed)),
        ("maxmemory_clients", options.client_buffers_max),
        ("buffered_bytes", network.buffered_bytes()),
        ("closed_by_limits", incidents.closed_by_limits()),
    ];
    figures.extend(Incident::ALL.map(|it| (it.name(), incidents.count(it))));
    figures
}
