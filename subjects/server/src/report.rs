//! The lines of the report channel, and the line that the server prints when it is ready.

use std::io::Write;
use std::sync::atomic::Ordering::Relaxed;

use concurve_reporter::{Reporter, ReporterError};

use crate::net::incidents::Incident;
use crate::net::network::RequestPath;
use crate::options::{ServerOptions, ThreadModel, name_of};
use crate::state::SharedState;

/// Reports the options, and the results of the recovery at the start.
pub fn facts(reporter: &Reporter, state: &SharedState) -> Result<(), ReporterError> {
    let (options, threads) = (&state.options, state.options.threads);
    reporter.fact("port", state.port)?;
    reporter.fact("service", name_of(options.service))?;
    reporter.fact("engines", name_of(threads.engine_kind()))?;
    reporter.fact("engine_count", threads.engines())?;
    reporter.fact("generation", state.generation)?;
    reporter.fact("io_threads", threads.io_threads())?;
    reporter.fact("execution", name_of(threads.execution()))?;
    if let ThreadModel::RunQueue { replies, .. } = threads {
        reporter.fact("replies", name_of(replies))?;
    }
    reporter.fact("latching", name_of(options.latching))?;
    reporter.fact("idle", options.idle.to_string())?;
    match state.services.records() {
        Some(records) => {
            reporter.fact("durability", name_of(options.durability))?;
            let pages = options.records.as_ref().map(|it| it.engine.cache_pages);
            reporter.fact("cache_pages", pages)?;
            reporter.fact("recovered_records", records.recovered.records)?;
            reporter.fact("recovered_undone", records.recovered.undone)?;
        }
        None => reporter.fact("capacity", options.locks.capacity)?,
    }
    if let Some(statements) = &options.statements {
        reporter.fact("statement_cache", name_of(statements.caching))?;
        reporter.fact("procedure_cache_kib", statements.procedure_cache_kib)?;
        reporter.fact("spin", statements.spin.to_string())?;
    }
    if let Some(backup) = &state.services.locks.backup {
        let loaded = backup.loaded;
        reporter.fact("backup_locks_loaded", loaded.locks)?;
        reporter.fact("backup_torn_bytes", loaded.torn_bytes)?;
        reporter.fact("durability", name_of(options.durability))?;
    }
    Ok(())
}

/// Reports that the server listens on this port, and prints it.
pub fn ready(reporter: &Reporter, options: &ServerOptions, port: u16) -> Result<(), ReporterError> {
    reporter.ready()?;
    // Users and scripts read the port here. That the pipe may be closed is not an error.
    let address = std::net::SocketAddr::new(options.address.ip(), port);
    let _ = writeln!(std::io::stdout(), "{}", listening(options, address));
    Ok(())
}

fn listening(options: &ServerOptions, address: std::net::SocketAddr) -> String {
    let durability = match options.records {
        Some(_) => format!(", durability {}", name_of(options.durability)),
        None => String::new(),
    };
    let service = name_of(options.service);
    let served_by = match options.threads {
        ThreadModel::SocketProcesses { engines } => counted(engines, "engine process", "es"),
        ThreadModel::SocketThreads { engines } => {
            counted(engines, "engine thread", "s") + " with the network"
        }
        ThreadModel::RunQueue {
            engines,
            io_threads,
            ..
        } => {
            let io_threads = counted(io_threads, "I/O thread", "s");
            format!("{io_threads}, {}", counted(engines, "engine thread", "s"))
        }
    };
    let (latching, idle) = (name_of(options.latching), options.idle);
    format!(
        "concurve-server: {service} on {address}, {served_by}, latching {latching}, \
         idle {idle}{durability}"
    )
}

fn counted(number: usize, what: &str, plural: &str) -> String {
    let plural = if number == 1 { "" } else { plural };
    format!("{number} {what}{plural}")
}

/// Reports the counts from the start to the end of the server.
pub fn end(reporter: &Reporter, state: &SharedState) -> Result<(), ReporterError> {
    let (network, services) = (&state.network, &state.services);
    let per_thread = network.requests_per_io_thread();
    let active = network.active_io_threads();
    reporter.fact("io_threads_active", active)?;
    reporter.fact("engine_deaths", state.engine_deaths.load(Relaxed))?;
    reporter.indicator("io_threads_active", active as f64, None)?;
    let requests: u64 = per_thread.iter().sum();
    reporter.indicator("requests", requests as f64, None)?;
    for (number, requests) in per_thread.iter().enumerate() {
        let worker = format!("io-{}", number + 1);
        reporter.worker_indicator("worker_requests", *requests as f64, None, &worker)?;
        let connections = network.counters[number].connections.load(Relaxed);
        reporter.worker_indicator("worker_connections", connections as f64, None, &worker)?;
    }
    let clients = &network.clients;
    let figures = [
        ("accepted", clients.accepted.load(Relaxed)),
        ("refused", clients.incidents.count(Incident::Refused)),
        ("closed_by_limits", clients.incidents.closed_by_limits()),
    ];
    for (name, count) in figures {
        reporter.indicator(name, count as f64, None)?;
    }
    if let RequestPath::RunQueue(path) = &network.path {
        let busy_seconds = path.busy_ns.load(Relaxed) as f64 / 1e9;
        reporter.indicator("worker_busy_seconds", busy_seconds, Some("s"))?;
        let batches = path.batches.load(Relaxed);
        reporter.indicator("worker_batches", batches as f64, None)?;
    }
    if let Some(backup) = &services.locks.backup {
        reporter.indicator("backup_compactions", backup.compactions() as f64, None)?;
    }
    let (prefix, figures) = match services.records() {
        Some(records) => ("records", records.figures()),
        None => ("lock", services.locks.figures()),
    };
    for (name, value) in figures {
        reporter.indicator(&format!("{prefix}_{name}"), value as f64, None)?;
    }
    state.monitoring.phase.lock().report(reporter)
}
