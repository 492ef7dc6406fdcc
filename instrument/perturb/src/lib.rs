//! What an experiment does to a program, to find out whether a cause is one: hold some of its locks
//! longer, or take memory bandwidth or CPU time away from it (decision 67).

mod error;
mod hog;
mod hold;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Do something to a program, to see what it loses.
///
/// Example: concurve-perturb hold --site 0x12f4@/usr/bin/pigz --held 1.5 -- pigz -p 4 file
#[derive(Debug, Parser)]
#[command(name = "concurve-perturb", version)]
struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Start a command that holds the locks taken at some places longer
    Hold(hold::Hold),
    /// Take memory bandwidth, or CPU time alone, until a signal ends it
    Hog(hog::Hog),
}

/// The command line.
pub fn main() -> ExitCode {
    let done = match Options::parse().what {
        What::Hold(hold) => hold.start(),
        What::Hog(hog) => hog.run(),
    };
    match done {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("concurve-perturb: {error}");
            ExitCode::from(127)
        }
    }
}
