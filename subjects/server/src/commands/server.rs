//! Commands about the server.

use std::sync::atomic::Ordering::Relaxed;

use concurve_records::Engine;

use super::{Call, Command, Fault, Flow, names};
use crate::hall::Hall;
use crate::settings::name_of;

/// The lock table's figures: LOCKSTAT, a section of INFO, and the indicators at the end.
pub fn lock_figures(hall: &Hall) -> Vec<(&'static str, u64)> {
    let (owners, owners_peak) = {
        let owners = hall.owners.lock();
        (owners.len() as u64, owners.peak() as u64)
    };
    let mut tries_made = 0;
    hall.locks.each_book(|book| tries_made += book.tries_made);
    let (locks, arguments, counters) = (hall.room.locks(), hall.room.arguments(), &hall.counters);
    vec![
        ("locks", locks.now()),
        ("locks_peak", locks.peak()),
        ("capacity", hall.room.capacity()),
        ("arguments", arguments.now()),
        ("arguments_peak", arguments.peak()),
        ("owners", owners),
        ("owners_peak", owners_peak),
        ("granted", counters.granted.load(Relaxed)),
        ("collisions", counters.collisions.load(Relaxed)),
        ("promotions", counters.promotions.load(Relaxed)),
        ("unlocks", counters.unlocks.load(Relaxed)),
        ("not_held", counters.not_held.load(Relaxed)),
        ("refused_full", counters.full.load(Relaxed)),
        ("overflows", hall.overflows.lock().total()),
        ("errors", counters.errors.load(Relaxed)),
        ("tries_made", tries_made),
    ]
}

/// The record engine's figures: a section of INFO, and the indicators at the end.
pub fn record_figures(engine: &Engine) -> Vec<(&'static str, u64)> {
    let mut figures = engine.statistics().named().to_vec();
    figures.push(("locks", engine.locks() as u64));
    figures.push(("waiting", engine.waiting() as u64));
    figures
}

/// How the server is set, and its clients: a section of INFO.
pub fn server_figures(hall: &Hall) -> Vec<(&'static str, String)> {
    let settings = &hall.settings;
    let requests: Vec<u64> = requests_per_thread(hall);
    let memory = concurve_engines::memory::usage();
    let memory_used = memory.map_or(0, |it| it.used_bytes);
    vec![
        // What clients of Redis look for.
        ("redis_version", "7.0.0".to_owned()),
        ("concurve_version", env!("CARGO_PKG_VERSION").to_owned()),
        ("process_id", std::process::id().to_string()),
        ("tcp_port", hall.port.to_string()),
        ("service", name_of(settings.service)),
        ("engines", name_of(settings.engines)),
        ("engine_count", settings.engine_count.to_string()),
        ("generation", hall.generation.to_string()),
        (
            "engine_deaths",
            hall.engine_deaths.load(Relaxed).to_string(),
        ),
        ("shared_memory", settings.shared_memory_bytes.to_string()),
        ("shared_memory_used", memory_used.to_string()),
        ("execution", name_of(settings.execution)),
        ("replies", name_of(settings.replies)),
        ("latching", name_of(settings.latching)),
        ("idle", settings.idle.to_string()),
        ("io_threads", settings.io_threads.to_string()),
        ("io_threads_active", active_threads(hall).to_string()),
        ("requests_per_io_thread", format!("{requests:?}")),
        ("connected_clients", hall.clients().to_string()),
        (
            "connected_clients_peak",
            hall.clients_peak.load(Relaxed).to_string(),
        ),
        (
            "total_connections_received",
            hall.counters.accepted.load(Relaxed).to_string(),
        ),
        (
            "rejected_connections",
            hall.counters.refused_clients.load(Relaxed).to_string(),
        ),
        (
            "closed_by_limits",
            hall.counters.closed_by_limits.load(Relaxed).to_string(),
        ),
        (
            "total_commands_processed",
            requests.iter().sum::<u64>().to_string(),
        ),
        ("keys", hall.leases.lock().len().to_string()),
    ]
}

pub fn requests_per_thread(hall: &Hall) -> Vec<u64> {
    let threads = hall.per_thread.iter();
    threads.map(|it| it.requests.load(Relaxed)).collect()
}

/// I/O threads that were given a connection.
pub fn active_threads(hall: &Hall) -> usize {
    let threads = hall.per_thread.iter();
    threads
        .filter(|it| it.connections.load(Relaxed) > 0)
        .count()
}

pub fn command(call: &mut Call) -> Result<Flow, Fault> {
    let commands = names::of(call.hall.settings.service);
    match call
        .arguments
        .get(1)
        .map(<[u8]>::to_ascii_uppercase)
        .as_deref()
    {
        Some(b"COUNT") => call.reply.integer(commands.len() as i64),
        Some(b"DOCS") => docs(call, &commands),
        Some(b"INFO" | b"LIST") | None => {
            call.reply.array(commands.len());
            for command in commands {
                call.reply.array(6);
                call.reply
                    .bulk(command.name.to_ascii_lowercase().as_bytes());
                call.reply.integer(i64::from(command.arity));
                call.reply.array(0);
                // No command has its keys where a cluster client would look for them.
                (0..3).for_each(|_| call.reply.integer(0));
            }
        }
        _ => return Err(Fault::usage("COMMAND knows COUNT, DOCS, INFO")),
    }
    Ok(Flow::Done)
}

/// What redis-cli shows while one types.
fn docs(call: &mut Call, commands: &[&Command]) {
    call.reply.map(commands.len());
    for command in commands {
        call.reply
            .bulk(command.name.to_ascii_lowercase().as_bytes());
        call.reply.map(3);
        let texts = [
            ("summary", command.summary),
            ("group", "concurve"),
            ("syntax", command.arguments),
        ];
        for (name, text) in texts {
            call.reply.bulk(name.as_bytes());
            call.reply.bulk(text.as_bytes());
        }
    }
}

pub fn config(call: &mut Call) -> Result<Flow, Fault> {
    if !call.arguments.at(1).eq_ignore_ascii_case(b"GET") {
        return Err(Fault::usage(
            "the server is set by its command line; CONFIG knows GET alone",
        ));
    }
    call.reply.map(0);
    Ok(Flow::Done)
}
