//! What the server says on the report channel, and the line that it prints.

use std::io::Write;
use std::sync::atomic::Ordering::Relaxed;

use concurve_reporter::{Reporter, ReporterError};

use crate::commands::server::{active_threads, lock_figures, record_figures, requests_per_thread};
use crate::hall::Hall;
use crate::settings::{Engines, Execution, Settings, name_of};

/// How the server is set, and what its start found.
pub fn facts(reporter: &Reporter, hall: &Hall) -> Result<(), ReporterError> {
    let settings = &hall.settings;
    reporter.fact("port", hall.port)?;
    reporter.fact("service", name_of(settings.service))?;
    reporter.fact("engines", name_of(settings.engines))?;
    reporter.fact("engine_count", settings.engine_count)?;
    reporter.fact("generation", hall.generation)?;
    reporter.fact("io_threads", settings.io_threads)?;
    reporter.fact("execution", name_of(settings.execution))?;
    if settings.execution == Execution::Worker {
        reporter.fact("replies", name_of(settings.replies))?;
    }
    reporter.fact("latching", name_of(settings.latching))?;
    reporter.fact("idle", settings.idle.to_string())?;
    match &hall.records {
        Some(records) => {
            reporter.fact("durability", name_of(settings.durability))?;
            let pages = settings.records.as_ref().map(|it| it.engine.cache_pages);
            reporter.fact("cache_pages", pages)?;
            reporter.fact("recovered_records", records.recovered.records)?;
            reporter.fact("recovered_undone", records.recovered.undone)?;
        }
        None => reporter.fact("capacity", settings.locks.capacity)?,
    }
    if let Some(statements) = &settings.statements {
        reporter.fact("statement_cache", name_of(statements.caching))?;
        reporter.fact("procedure_cache_kib", statements.procedure_cache_kib)?;
        reporter.fact("spin", statements.spin.to_string())?;
    }
    if let Some(loaded) = hall.loaded {
        reporter.fact("backup_locks_loaded", loaded.locks)?;
        reporter.fact("backup_torn_bytes", loaded.torn_bytes)?;
        reporter.fact("durability", name_of(settings.durability))?;
    }
    Ok(())
}

/// The server is up, and listens.
pub fn ready(reporter: &Reporter, settings: &Settings, port: u16) -> Result<(), ReporterError> {
    reporter.ready()?;
    // Whoever started it by hand, or from a script, reads the port here; a closed pipe is no fault.
    let address = std::net::SocketAddr::new(settings.address.ip(), port);
    let _ = writeln!(std::io::stdout(), "{}", listening(settings, address));
    Ok(())
}

fn listening(settings: &Settings, address: std::net::SocketAddr) -> String {
    let durability = match settings.records {
        Some(_) => format!(", durability {}", name_of(settings.durability)),
        None => String::new(),
    };
    let service = name_of(settings.service);
    let (engines, io_threads) = (settings.engine_count, settings.io_threads);
    let served_by = match (settings.engines, settings.execution) {
        (Engines::Processes, _) => counted(engines, "engine process", "es"),
        (_, Execution::Inline) => counted(engines, "engine thread", "s") + " with the network",
        (_, Execution::Worker) => {
            let io_threads = counted(io_threads, "I/O thread", "s");
            format!("{io_threads}, {}", counted(engines, "engine thread", "s"))
        }
    };
    let (latching, idle) = (name_of(settings.latching), settings.idle);
    format!(
        "concurve-server: {service} on {address}, {served_by}, latching {latching}, \
         idle {idle}{durability}"
    )
}

fn counted(number: usize, what: &str, plural: &str) -> String {
    let plural = if number == 1 { "" } else { plural };
    format!("{number} {what}{plural}")
}

/// What was done from the start to the end.
pub fn end(reporter: &Reporter, hall: &Hall) -> Result<(), ReporterError> {
    let per_thread = requests_per_thread(hall);
    let active = active_threads(hall);
    reporter.fact("io_threads_active", active)?;
    reporter.fact("engine_deaths", hall.engine_deaths.load(Relaxed))?;
    reporter.indicator("io_threads_active", active as f64, None)?;
    let requests: u64 = per_thread.iter().sum();
    reporter.indicator("requests", requests as f64, None)?;
    for (number, requests) in per_thread.iter().enumerate() {
        let worker = format!("io-{}", number + 1);
        reporter.worker_indicator("worker_requests", *requests as f64, None, &worker)?;
        let connections = hall.per_thread[number].connections.load(Relaxed);
        reporter.worker_indicator("worker_connections", connections as f64, None, &worker)?;
    }
    let figures = [
        ("accepted", &hall.counters.accepted),
        ("refused", &hall.counters.refused_clients),
        ("closed_by_limits", &hall.counters.closed_by_limits),
    ];
    for (name, counter) in figures {
        reporter.indicator(name, counter.load(Relaxed) as f64, None)?;
    }
    if hall.settings.execution == Execution::Worker {
        let busy_seconds = hall.worker_busy_ns.load(Relaxed) as f64 / 1e9;
        reporter.indicator("worker_busy_seconds", busy_seconds, Some("s"))?;
        let batches = hall.worker_batches.load(Relaxed);
        reporter.indicator("worker_batches", batches as f64, None)?;
    }
    if hall.has_backup() {
        reporter.indicator("backup_compactions", hall.compactions() as f64, None)?;
    }
    let (prefix, figures) = match &hall.records {
        Some(records) => ("records", record_figures(&records.engine)),
        None => ("lock", lock_figures(hall)),
    };
    for (name, value) in figures {
        reporter.indicator(&format!("{prefix}_{name}"), value as f64, None)?;
    }
    hall.phase.lock().report(reporter)
}
