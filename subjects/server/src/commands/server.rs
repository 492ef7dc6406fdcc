//! Commands about the server: its figures, the measured phase, the table of commands.

use std::fmt::Write;

use super::call::{Call, Command, CommandTable, Fault};
use crate::figures::{client_figures, server_figures, snapshot, utilisations};
use crate::monitor::meter::{Reading, State};
use crate::monitor::phase::Snapshot;
use crate::request::Flow;
use crate::state::SharedState;

/// Lines of a section of INFO.
type Lines = Vec<(String, String)>;

/// All sections, or those that are named.
pub fn info(call: &mut Call<SharedState>) -> Result<Flow, Fault> {
    let state = call.service;
    let snapshot = snapshot(state);
    let asked: Vec<&[u8]> = call.arguments.from(1).collect();
    let is_asked = |title: &str| {
        let is_it = |it: &&[u8]| it.eq_ignore_ascii_case(title.as_bytes());
        asked.is_empty() || asked.iter().any(is_it)
    };
    let mut text = String::new();
    for (title, lines) in sections(state, &snapshot) {
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

fn sections(state: &SharedState, snapshot: &Snapshot) -> Vec<(&'static str, Lines)> {
    let mut sections = vec![
        ("Server", named(server_figures(state))),
        ("Clients", named(client_figures(state))),
        ("Activity", activity(snapshot)),
        ("Engines", engines(snapshot)),
        ("Latches", latches(snapshot)),
        ("Utilisation", utilisation(state)),
    ];
    if !snapshot.statements.is_empty() {
        sections.push(("Statements", named(snapshot.statements.clone())));
    }
    sections.push(match state.services.records() {
        Some(records) => ("Records", named(records.figures())),
        None => ("Locks", named(state.services.locks.figures())),
    });
    sections
}

/// How much is in use of what has a limit.
fn utilisation(state: &SharedState) -> Lines {
    let found = utilisations(&state.services).into_iter();
    found
        .map(|it| {
            let numbers = format!("used={},size={}", it.used, it.size);
            (it.name.to_owned(), numbers)
        })
        .collect()
}

fn named<V: ToString>(figures: Vec<(&'static str, V)>) -> Lines {
    let figures = figures.into_iter();
    figures
        .map(|(name, value)| (name.to_owned(), value.to_string()))
        .collect()
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

/// Time in each state by the engine's own clock, then CPU time by the kernel's account, which is
/// absent if the engine is dead. `clock` distinguishes an engine from its replacement.
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

/// Marks the begin and the end of a phase whose counts the server reports when it ends.
pub fn phase(call: &mut Call<SharedState>) -> Result<Flow, Fault> {
    let state = call.service;
    let mut phase = state.monitoring.phase.lock();
    match call.arguments.at(1).to_ascii_uppercase().as_slice() {
        b"BEGIN" => phase.begin(snapshot(state)),
        b"END" if phase.is_begun() => phase.end(snapshot(state)),
        b"END" => return Err(Fault::usage("no phase is open: send PHASE BEGIN first")),
        _ => return Err(Fault::usage("PHASE has the subcommands BEGIN and END")),
    }
    call.reply.status("OK");
    Ok(Flow::Done)
}

pub fn command(call: &mut Call<CommandTable>) -> Result<Flow, Fault> {
    let commands: Vec<&Command> = call.service.commands().collect();
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
                // Positions of keys, which cluster clients use: no command here has any.
                (0..3).for_each(|_| call.reply.integer(0));
            }
        }
        _ => {
            return Err(Fault::usage(
                "COMMAND has the subcommands COUNT, DOCS, INFO",
            ));
        }
    }
    Ok(Flow::Done)
}

/// What redis-cli shows while a command is typed.
fn docs(call: &mut Call<CommandTable>, commands: &[&Command]) {
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

pub fn config(call: &mut Call<CommandTable>) -> Result<Flow, Fault> {
    if !call.arguments.at(1).eq_ignore_ascii_case(b"GET") {
        return Err(Fault::usage(
            "options are set on the command line; CONFIG has only the subcommand GET",
        ));
    }
    call.reply.map(0);
    Ok(Flow::Done)
}
