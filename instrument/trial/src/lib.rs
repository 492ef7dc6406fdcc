//! The trial runner: one spec in, one record out.
//!
//! spec → suspended launch → controls, read back → counters → release → one loop over signals,
//! streams, reports, limits and samples → the last process is reaped → record.

mod attached;
mod census;
mod channel;
mod check;
mod controls;
mod convert;
mod error;
mod event_loop;
mod events;
mod frequency;
mod host;
mod hot_pace;
mod intervals;
mod launch;
mod ledger;
mod machine;
mod orphans;
mod output;
mod phases;
mod program;
mod quota;
mod ready;
mod record;
mod role;
mod sampler;
mod spec;
mod thread_timelines;
mod timeline;
mod trial;
mod waits;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use concurve_probe::{open_files, process};
use concurve_wire::record::TrialRecord;
use concurve_wire::spec::TrialSpec;
use nix::sys::signal::Signal;
use serde::Serialize;

pub use error::TrialError;
use error::{OnHost, Result};
use event_loop::Signals;
use events::Events;
use host::Host;
use trial::Trial;

/// Runs one trial: a spec (JSON) on standard input, its record (one line of JSON) on standard
/// output.
///
/// Exit codes: 0 a record was written, its outcome says how the trial went; 2 the spec is
/// invalid; 3 the host refused something before any role ran; 4 internal.
///
/// Example:
///   echo '{"format":1,"trial":"a","roles":[{"name":"target","argv":["true"]}]}' | concurve-trial
#[derive(Parser)]
#[command(name = "concurve-trial", version, verbatim_doc_comment)]
struct Arguments {
    /// Writes each edge of a phase, when a role reports it, as a line of JSON to this descriptor
    #[arg(long, value_name = "FD")]
    events: Option<u32>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Reads a spec and checks whether each role would start with its controls; runs no program
    Check,
    /// Lists which sources of measurement this host grants
    Probes,
}

/// Entry point of the binary.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        None => run_trial(arguments.events),
        Some(Command::Check) => {
            spec::read(std::io::stdin()).and_then(|spec| print(&check::check(&spec)))
        }
        Some(Command::Probes) => print(&host::grants()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("concurve-trial: {error}");
            error.exit_code()
        }
    }
}

fn run_trial(events: Option<u32>) -> Result<()> {
    let orphaned = !process::signal_on_parent_death(Signal::SIGTERM).on_host("watch the parent")?;
    let spec = spec::read(std::io::stdin())?;
    if orphaned {
        return Err(TrialError::Internal("the parent died at once".into()));
    }
    let events = match events {
        None => Events::default(),
        Some(number) => Events::open(number).map_err(|error| {
            TrialError::Spec(format!(
                "--events {number}: no descriptor to write to: {error}"
            ))
        })?,
    };
    print(&measure(spec, events)?)
}

fn measure(spec: TrialSpec, events: Events) -> Result<TrialRecord> {
    let signals = Signals::open()?;
    open_files::raise_limit();
    let mut host = Host::open();
    host.become_parent_of_orphans(&spec)?;
    let mut trial = Trial::new(spec, host, events);
    event_loop::run(&mut trial, &signals)?;
    Ok(record::write(trial))
}

fn print(value: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_string(value)
        .map_err(|error| TrialError::Internal(format!("write JSON: {error}")))?;
    line.push('\n');
    std::io::stdout()
        .write_all(line.as_bytes())
        .map_err(|error| TrialError::Internal(format!("write to standard output: {error}")))
}
