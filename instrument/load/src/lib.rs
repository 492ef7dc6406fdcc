//! Load on a server or an embedded engine from many sessions: closed loop or open, with every latency
//! counted.
//!
//! Exit codes: 0 done, or objectives met; 1 failed (the message says at what); 2 refused because of wrong
//! options; 4 more was left unanswered than `--unanswered-max` allows; 10 objectives not met, 11 undecided
//! whether they are, or not met on a busy machine; 130 or 143 stopped by SIGINT or SIGTERM; 141 the reader
//! of its output has gone.

use std::mem;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, FromArgMatches};
use concurve_reporter::Reporter;
use serde_json::Value;

use crate::command_line::Arguments;
use crate::dataset::{DatasetUnderLoad, Verified};
use crate::drive::{raise_open_file_limit, run_child};
use crate::figures::intervals::IntervalObservers;
use crate::figures::machine::MachineBefore;
use crate::figures::{Figures, fail_if_all_lost, json, report, text};
use crate::output::tell;
use crate::plan::{Goal, Load, Plan, RateSearch};
use crate::stop::Stop;
use crate::together::{Leader, Meeting};

mod address;
mod admin;
mod called;
mod command_line;
mod connection;
mod counts;
mod dataset;
mod drive;
mod engine;
mod error;
mod failures;
mod figures;
mod output;
mod plan;
mod protocol;
mod slo;
mod stop;
mod terminal_line;
mod together;
mod units;
mod workload;

use failures::Failures;

pub use error::Error;

/// Entry point of the binary.
pub fn main() -> ExitCode {
    let command = Arguments::command().bin_name(called::program());
    let matches = command.get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|it| it.exit());
    match Stop::new() {
        Ok(stop) => load(&arguments, &stop).unwrap_or_else(|it| failed(&it, stop.signal())),
        Err(error) => failed(&Error::Signals(error).into(), None),
    }
}

/// Says what failed; `signal` is the one that has stopped the run, if one has.
fn failed(failures: &Failures, signal: Option<i32>) -> ExitCode {
    for error in failures.told() {
        tell(&format!("{}: {error}", called::program()));
    }
    ExitCode::from(failures.exit_code(signal))
}

fn load(arguments: &Arguments, stop: &Stop) -> Result<ExitCode, Failures> {
    concurve_files::keep_new_files_private().map_err(|it| Error::Usage(it.to_string()))?;
    let plan = arguments.plan()?;
    let led = arguments.led()?;
    let followers = led.as_ref().map_or(0, |it| it.1);
    raise_open_file_limit(&plan, followers)?;
    if let Some(number) = arguments.part {
        return match run_child(&Arc::new(plan), number, stop) {
            // The parent reports that it was stopped.
            Ok(()) | Err(Error::Stopped) => Ok(ExitCode::SUCCESS),
            Err(error) => Err(error.into()),
        };
    }
    stop.on_signals().map_err(Error::Signals)?;
    if let Some(note) = arguments.threads_beyond_sessions() {
        tell(&format!("{}: {note}", called::program()));
    }
    let reporter = Reporter::from_environment()?;
    if let Some(meeting) = arguments.followed()? {
        return follow(plan, &meeting, arguments, &reporter, stop);
    }
    let plan = Arc::new(plan);
    if arguments.dataset.verify_only {
        verify_only(&plan, arguments, &reporter, stop)?;
        return Ok(ExitCode::SUCCESS);
    }
    // They find this load at once, and wait while it makes its data.
    let leader = led.map(|(meeting, followers)| Leader::listen(meeting, followers, stop));
    let leader = leader.transpose()?;
    let dataset = plan.dataset.as_ref();
    let mut dataset = dataset
        .map(|it| it.prepare(&arguments.dataset, stop))
        .transpose()?;
    if arguments.dataset.init_only {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(filling) = &plan.prefill {
        drive::fill(filling, stop)?;
    }
    let (mut code, mut verified) = (ExitCode::SUCCESS, None);
    match &plan.goal {
        Goal::Load(load) => {
            let dataset = dataset.as_mut();
            verified = measure(&plan, load, arguments, dataset, &reporter, stop)?;
        }
        Goal::Search(asked) => {
            code = search(&plan, asked, leader, arguments, &reporter, stop)?;
        }
    }
    Ok(match stop.signal() {
        None => code,
        Some(signal) => {
            let unverified = match arguments.dataset.verify && verified.is_none() {
                true => ", and the data are not verified",
                false => "",
            };
            let program = called::program();
            tell(&format!(
                "{program}: stopped; these are the figures so far{unverified}"
            ));
            ExitCode::from(128 + signal as u8)
        }
    })
}

/// One run: measures, records the counts, shows the figures, and verifies the data. What fails behind the last
/// answer is told when all of that is done. Returns what was verified: nothing where the run was stopped.
fn measure(
    plan: &Arc<Plan>,
    load: &Load,
    arguments: &Arguments,
    mut dataset: Option<&mut DatasetUnderLoad<'_>>,
    reporter: &Reporter,
    stop: &Stop,
) -> Result<Option<Verified>, Failures> {
    let (hdr, requests) = (arguments.hdr.as_deref(), arguments.log_requests.as_deref());
    let observers = IntervalObservers::new(plan, load.end, hdr, requests)?;
    let machine = MachineBefore::outside_trials(reporter);
    let counted = drive::run(plan, load, reporter, stop, observers)?;
    let machine_busy = machine.and_then(|it| it.busy_since(plan.target.is_server_here()));
    let (pace, greatest) = (counted.pace, counted.greatest);
    let mut figures = Figures::of(plan, pace, greatest, counted.tallies, machine_busy);
    figures.warnings.extend(counted.unmarked);
    let mut failures = counted.failures;
    if let Some(dataset) = &mut dataset {
        failures.note(dataset.record(figures.all.acknowledged, figures.all.in_doubt));
    }
    failures.note(report::write(plan, &figures, reporter));
    let answered = figures.all.acknowledged > 0 || !figures.latency.answered().is_empty();
    let left = fail_if_all_lost(plan, plan.sessions, &figures.all.lost, answered);
    let is_left = failures.note(left).is_some();
    let only_errors = figures.fail_if_only_errors();
    // Of a server that never answered a table would say how long it did not.
    let has_rate = only_errors.is_ok() && (is_left || answered);
    let table = match arguments.json || !has_rate {
        true => Ok(()),
        false => print(&text::table(plan, &figures)),
    };
    let unverified = || json_text(&json::figures(plan, &figures, None));
    let verified = match dataset {
        Some(dataset) if is_left && stop.signal().is_none() => {
            stop.print_at_second(arguments.json.then(unverified));
            let verified = verify(dataset, reporter, stop);
            stop.print_at_second(None);
            failures.note(verified).flatten()
        }
        _ => None,
    };
    let rest = match (arguments.json, &verified) {
        (true, held) => print_json(&json::figures(plan, &figures, held.as_ref())),
        (false, Some(held)) => print(&text::verified(held, Some(&figures))),
        (false, None) => Ok(()),
    };
    failures.note(table.and(rest));
    if is_left && stop.signal().is_none() {
        failures.note(only_errors);
        failures.note(figures.fail_if_unanswered(arguments.unanswered_max));
    }
    failures.or(verified)
}

/// Verifies the data after a load, if that is asked for, and reports it. Nothing is verified where a signal
/// stops it.
fn verify(
    dataset: &DatasetUnderLoad<'_>,
    reporter: &Reporter,
    stop: &Stop,
) -> Result<Option<Verified>, Error> {
    let verified = match dataset.verify().map_err(Error::from) {
        Err(error) if error.is_stop() && stop.signal().is_some() => None,
        verified => verified?,
    };
    if let Some(verified) = &verified {
        report::verified(verified, reporter)?;
    }
    Ok(verified)
}

/// Searches the greatest rate that keeps the objectives, or checks one rate. The exit code is the
/// verdict; in a study that is in the record, and is no failure of the trial.
fn search(
    plan: &Arc<Plan>,
    asked: &RateSearch,
    leader: Option<Leader>,
    arguments: &Arguments,
    reporter: &Reporter,
    stop: &Stop,
) -> Result<ExitCode, Failures> {
    let mut found = slo::seek_rate(plan, asked, leader, reporter, stop)?;
    let mut failures = mem::take(&mut found.failures);
    failures.note(slo::report(plan, &found, reporter));
    failures.note(match arguments.json {
        true => print_json(&slo::json(plan, &found)),
        false => print(&slo::text(plan, &found)),
    });
    failures.note(fail_if_all_lost(plan, found.sessions, &found.lost, true));
    failures.or(match called::by_a_study(reporter) {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(slo::exit_code(&found)),
    })
}

/// Takes part in the search of another load, which says what was found.
fn follow(
    plan: Plan,
    meeting: &Meeting,
    arguments: &Arguments,
    reporter: &Reporter,
    stop: &Stop,
) -> Result<ExitCode, Failures> {
    let (plan, mut followed) = together::follow(plan, meeting, reporter, stop)?;
    let mut failures = mem::take(&mut followed.failures);
    failures.note(slo::report_part(&followed, reporter));
    failures.note(match arguments.json {
        true => print_json(&slo::part_json(&plan, &followed)),
        false => print(&slo::part_text(&plan, &followed)),
    });
    failures.note(fail_if_all_lost(&plan, plan.sessions, &followed.lost, true));
    failures.or(ExitCode::SUCCESS)
}

/// Verifies the data by the ledger of an earlier load, without any load.
fn verify_only(
    plan: &Plan,
    arguments: &Arguments,
    reporter: &Reporter,
    stop: &Stop,
) -> Result<(), Error> {
    reporter.ready()?;
    if let Some(dataset) = &plan.dataset {
        let verified = dataset.verify(&arguments.dataset, stop)?;
        report::verified(&verified, reporter)?;
        match arguments.json {
            true => print_json(&json::verified(&verified))?,
            false => print(&text::verified(&verified, None))?,
        }
    }
    Ok(())
}

fn print(text: &str) -> Result<(), Error> {
    output::print(text).map_err(Error::Output)
}

fn print_json(value: &Value) -> Result<(), Error> {
    print(&json_text(value))
}

fn json_text(value: &Value) -> String {
    format!("{value:#}\n")
}
