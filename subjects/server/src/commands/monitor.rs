//! Commands for those who watch the server.

use std::fmt::Write;

use concurve_records::Engine;

use super::server::{lock_figures, record_figures, server_figures};
use super::{Call, Fault, Flow};
use crate::hall::Hall;
use crate::monitor::meter::{Reading, State};
use crate::monitor::snapshot::Snapshot;

/// Lines of a section of INFO.
type Lines = Vec<(String, String)>;

/// All sections, or those that are asked for.
pub fn info(call: &mut Call) -> Result<Flow, Fault> {
    let snapshot = Snapshot::take(call.hall);
    let asked: Vec<&[u8]> = call.arguments.from(1).collect();
    let is_asked = |title: &str| {
        let is_it = |it: &&[u8]| it.eq_ignore_ascii_case(title.as_bytes());
        asked.is_empty() || asked.iter().any(is_it)
    };
    let mut text = String::new();
    for (title, lines) in sections(call.hall, &snapshot) {
        if !is_asked(title) {
            continue;
        }
        let gap = if text.is_empty() { "" } else { "\r\n" };
        let _ = write!(text, "{gap}# {title}\r\n");
        for (name, value) in lines {
            let _ = write!(text, "{name}:{value}\r\n");
        }
    }
    call.reply.bulk(text.as_bytes());
    Ok(Flow::Done)
}

fn sections(hall: &Hall, snapshot: &Snapshot) -> Vec<(&'static str, Lines)> {
    let mut sections = vec![
        ("Server", named(server_figures(hall))),
        ("Activity", activity(snapshot)),
        ("Engines", engines(snapshot)),
        ("Latches", latches(snapshot)),
    ];
    if !snapshot.statements.is_empty() {
        sections.push(("Statements", named(snapshot.statements.clone())));
    }
    sections.push(match &hall.records {
        Some(records) => ("Records", record_lines(&records.engine)),
        None => ("Locks", named(lock_figures(hall))),
    });
    sections
}

fn named<V: ToString>(figures: Vec<(&'static str, V)>) -> Lines {
    let figures = figures.into_iter();
    figures
        .map(|(name, value)| (name.to_owned(), value.to_string()))
        .collect()
}

fn record_lines(engine: &Engine) -> Lines {
    let mut lines = named(record_figures(engine));
    if let Some(why) = engine.failure() {
        lines.push(("stopped".to_owned(), why.clone()));
    }
    lines
}

/// What the server as a whole did, and when it was read.
fn activity(snapshot: &Snapshot) -> Lines {
    let mut figures = vec![
        ("read_at_us", us(snapshot.at_ns)),
        ("cpu_us", us(snapshot.cpu_ns)),
    ];
    figures.extend(&snapshot.work);
    named(figures)
}

fn engines(snapshot: &Snapshot) -> Lines {
    let threads = snapshot.threads();
    threads
        .map(|(name, reading)| (name.clone(), times(reading)))
        .collect()
}

/// Times in each state by the engine's own clock, then by the kernel's, which is absent if the
/// engine is. `clock` tells an engine from its successor.
fn times(reading: &Reading) -> String {
    let mut text = String::new();
    for state in State::ALL {
        let _ = write!(text, "{}_us={},", state.name(), us(reading.of(state)));
    }
    if let Some(cpu_ns) = reading.cpu_ns {
        let _ = write!(text, "cpu_us={},", us(cpu_ns));
    }
    let _ = write!(text, "clock={}", reading.clock);
    text
}

fn latches(snapshot: &Snapshot) -> Lines {
    let line = |it: &concurve_latch::Counts| {
        let counts = format!(
            "acquisitions={},waits={},spins={},sleeps={},held={}",
            it.acquisitions, it.waits, it.spins, it.sleeps, it.held
        );
        (it.name.clone(), counts)
    };
    snapshot.latches.iter().map(line).collect()
}

fn us(ns: u64) -> u64 {
    ns / 1000
}

/// Marks where a phase begins and ends whose counts the server reports at its end.
pub fn phase(call: &mut Call) -> Result<Flow, Fault> {
    let mut phase = call.hall.phase.lock();
    match call.arguments.at(1).to_ascii_uppercase().as_slice() {
        b"BEGIN" => phase.begin(call.hall),
        b"END" if phase.end(call.hall) => {}
        b"END" => return Err(Fault::usage("no phase was begun: PHASE BEGIN comes first")),
        _ => return Err(Fault::usage("PHASE knows BEGIN and END")),
    }
    call.reply.status("OK");
    Ok(Flow::Done)
}
