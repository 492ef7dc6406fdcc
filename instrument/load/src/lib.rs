//! Load on a server from many sessions: closed loop or open, with every latency counted.
//!
//! Exit codes: 0 done, 1 failed (the message says at what), 2 refused as asked wrongly, 130 or 143
//! stopped by SIGINT or SIGTERM.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use concurve_reporter::Reporter;

use crate::data::{Books, Upkeep};
use crate::figures::Figures;
use crate::plan::Plan;
use crate::slo::Objective;
use crate::stop::Stop;
use crate::watch::Watch;

mod arrivals;
mod cli;
mod client;
mod connecting;
mod connection;
mod counting;
mod crew;
mod data;
mod desk;
mod embedded;
mod error;
mod figures;
mod hdr_log;
mod histogram;
mod intervals;
mod json;
mod limits;
mod marks;
mod numbers;
mod open_loop;
mod plan;
mod process;
mod progress;
mod protocol;
mod reach;
mod report;
mod run;
mod session;
mod slo;
mod span;
mod stop;
mod tally;
mod target;
mod task;
mod text;
mod url;
mod usage;
mod watch;
mod workload;

pub use error::Error;

/// Entry point of the binary.
pub fn main() -> ExitCode {
    match load(cli::Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("concurve-load: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn load(arguments: cli::Arguments) -> Result<ExitCode, Error> {
    let part = arguments.part();
    let plan = Arc::new(arguments.plan()?);
    limits::fit_open_files(&plan)?;
    let stop = Stop::new().map_err(Error::Signals)?;
    if let Some(number) = part {
        return match process::child(&plan, number, &stop) {
            // Who stopped it says so.
            Ok(()) | Err(Error::Stopped) => Ok(ExitCode::SUCCESS),
            Err(error) => Err(error),
        };
    }
    stop.on_signals().map_err(Error::Signals)?;
    let reporter = Reporter::from_environment()?;
    let upkeep = arguments.bank().upkeep();
    if arguments.bank().is_verify_only() {
        verify_only(&plan, &upkeep, &reporter, &stop)?;
        return Ok(ExitCode::SUCCESS);
    }
    let ground = plan.ground.as_ref();
    let mut books = ground.map(|it| it.prepare(&upkeep, &stop)).transpose()?;
    if arguments.bank().is_init_only() {
        return Ok(ExitCode::SUCCESS);
    }
    match arguments.objectives() {
        [] => measure(&plan, &arguments, books.as_mut(), &reporter, &stop)?,
        objectives => search(&plan, objectives, &arguments, &reporter, &stop)?,
    }
    Ok(match stop.signal() {
        None => ExitCode::SUCCESS,
        Some(signal) => {
            let verified = match upkeep.verify {
                true => ", and the data are not verified",
                false => "",
            };
            eprintln!("concurve-load: stopped; these are the figures so far{verified}");
            ExitCode::from(128 + signal as u8)
        }
    })
}

fn measure(
    plan: &Arc<Plan>,
    arguments: &cli::Arguments,
    books: Option<&mut Books<'_>>,
    reporter: &Reporter,
    stop: &Stop,
) -> Result<(), Error> {
    let watch = Watch::new(plan, arguments.hdr())?;
    let counted = run::run(plan, reporter, stop, watch)?;
    let figures = Figures::of(plan, counted);
    report::write(plan, &figures, reporter)?;
    match arguments.json() {
        true => println!("{:#}", json::figures(plan, &figures)),
        false => print!("{}", text::table(plan, &figures)),
    }
    let Some(books) = books else {
        return Error::if_all_lost(plan, &figures.all.lost);
    };
    books.note(figures.all.acknowledged, figures.all.in_doubt)?;
    Error::if_all_lost(plan, &figures.all.lost)?;
    if stop.signal().is_none()
        && let Some(verified) = books.verify()?
    {
        report::verified(&verified, reporter)?;
        if !arguments.json() {
            println!("{}", text::verified(&verified));
        }
    }
    Ok(())
}

fn search(
    plan: &Arc<Plan>,
    objectives: &[Objective],
    arguments: &cli::Arguments,
    reporter: &Reporter,
    stop: &Stop,
) -> Result<(), Error> {
    let found = slo::find(plan, objectives, reporter, stop)?;
    slo::report(plan, &found, reporter)?;
    match arguments.json() {
        true => println!("{:#}", slo::json(plan, &found)),
        false => print!("{}", slo::text(plan, &found)),
    }
    Error::if_all_lost(plan, &found.lost)
}

/// Holds the data against what an earlier load has noted, without any load.
fn verify_only(
    plan: &Plan,
    upkeep: &Upkeep,
    reporter: &Reporter,
    stop: &Stop,
) -> Result<(), Error> {
    reporter.ready()?;
    if let Some(ground) = &plan.ground {
        let verified = ground.verify(upkeep, stop)?;
        report::verified(&verified, reporter)?;
        println!("{}", text::verified(&verified));
    }
    Ok(())
}
