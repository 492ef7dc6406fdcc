//! What the server says on the report channel, and the line that it prints.

use std::io::Write;
use std::sync::atomic::Ordering::Relaxed;

use concurve_wire::reporter::{Reporter, ReporterError};

use crate::commands::server::{active_threads, lock_figures, record_figures, requests_per_thread};
use crate::hall::Hall;
use crate::settings::{Settings, name_of};

/// The server is up: how it is set, and where it listens.
pub fn ready(reporter: &Reporter, hall: &Hall) -> Result<(), ReporterError> {
    let settings = &hall.settings;
    reporter.fact("port", hall.port)?;
    reporter.fact("service", name_of(settings.service))?;
    reporter.fact("io_threads", settings.io_threads)?;
    reporter.fact("execution", name_of(settings.execution))?;
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
    if let Some(loaded) = hall.loaded {
        reporter.fact("backup_locks_loaded", loaded.locks)?;
        reporter.fact("backup_torn_bytes", loaded.torn_bytes)?;
        reporter.fact("durability", name_of(settings.durability))?;
    }
    reporter.ready()?;
    // Whoever started it by hand, or from a script, reads the port here; a closed pipe is no fault.
    let address = std::net::SocketAddr::new(settings.address.ip(), hall.port);
    let _ = writeln!(std::io::stdout(), "{}", listening(settings, address));
    Ok(())
}

fn listening(settings: &Settings, address: std::net::SocketAddr) -> String {
    let durability = match settings.records {
        Some(_) => format!(", durability {}", name_of(settings.durability)),
        None => String::new(),
    };
    format!(
        "concurve-server: {} on {address}, {} I/O threads, execution {}, latching {}, \
         idle {}{durability}",
        name_of(settings.service),
        settings.io_threads,
        name_of(settings.execution),
        name_of(settings.latching),
        settings.idle,
    )
}

/// What was done from the start to the end.
pub fn end(reporter: &Reporter, hall: &Hall) -> Result<(), ReporterError> {
    let per_thread = requests_per_thread(hall);
    let active = active_threads(hall);
    reporter.fact("io_threads_active", active)?;
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
    if hall.settings.execution == crate::settings::Execution::Worker {
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
    Ok(())
}
