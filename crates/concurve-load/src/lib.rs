//! Load on a server from many sessions: closed loop or open, with every latency counted.
//!
//! Exit codes: 0 done, 1 failed (the message says at what), 2 refused as asked wrongly.

use std::process::ExitCode;

use clap::Parser;
use concurve_wire::reporter::Reporter;

mod arrivals;
mod cli;
mod connection;
mod error;
mod event_loop;
mod figures;
mod gate;
mod keys;
mod plan;
mod process;
mod protocol;
mod report;
mod run;
mod script;
mod tally;
mod text;

pub use error::Error;

/// Entry point of the binary.
pub fn main() -> ExitCode {
    match load(cli::Arguments::parse()) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("concurve-load: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn load(arguments: cli::Arguments) -> Result<String, Error> {
    let part = arguments.part();
    let plan = arguments.plan()?;
    if let Some(number) = part {
        process::child(&plan, number)?;
        return Ok(String::new());
    }
    let reporter = Reporter::from_environment()?;
    let counted = run::run(&plan, &reporter)?;
    let figures = figures::Figures::of(&plan, counted);
    report::write(&plan, &figures, &reporter)?;
    Ok(text::table(&plan, &figures))
}
