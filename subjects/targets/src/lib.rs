//! Small programs of known behaviour, which test and calibrate the laboratory and serve as
//! background load. `docs/programs/targets.md` says what each program does and what a record of it
//! must show.
//!
//! Exit codes: 0 done, 1 failed (the message says in which action), 2 wrong usage.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod busy;
mod crash;
mod draw;
mod error;
mod fork;
mod fsync;
mod garbage;
mod hang;
mod limits;
mod many_locks;
mod mappings;
mod memory;
mod mutex;
mod noisy;
mod output;
mod request_server;
mod serve;
mod shared_counter;
mod sleep;
mod slow_client;
mod stop;
mod storm;
mod switch;
mod work;
mod workers;

pub use error::Error;

/// Small programs of known behaviour, to test and calibrate a laboratory with
#[derive(Debug, Parser)]
#[command(name = "concurve-targets", version, max_term_width = 100)]
#[command(
    after_help = "Example:\n  concurve-targets busy --threads 2 --total-iterations 100000000"
)]
struct Arguments {
    #[command(subcommand)]
    target: Target,
}

#[derive(Debug, Subcommand)]
enum Target {
    Busy(busy::Busy),
    Sleep(sleep::Sleep),
    Mutex(mutex::Mutex),
    ManyLocks(many_locks::ManyLocks),
    SharedCounter(shared_counter::SharedCounter),
    Fsync(fsync::Fsync),
    Fork(fork::Fork),
    #[command(hide = true)]
    ForkChild(fork::ForkChild),
    ThreadStorm(storm::ThreadStorm),
    Crash(crash::Crash),
    Hang(hang::Hang),
    Garbage(garbage::Garbage),
    Output(output::Output),
    Memory(memory::Memory),
    Switch(switch::Switch),
    Noisy(noisy::Noisy),
    Serve(serve::Serve),
    RequestServer(request_server::RequestServer),
    SlowClient(slow_client::SlowClient),
}

/// Entry point of the binary.
pub fn main() -> ExitCode {
    match run(Arguments::parse().target) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("concurve-targets: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(target: Target) -> Result<(), Error> {
    match target {
        Target::Busy(it) => it.run(),
        Target::Sleep(it) => it.run(),
        Target::Mutex(it) => it.run(),
        Target::ManyLocks(it) => it.run(),
        Target::SharedCounter(it) => it.run(),
        Target::Fsync(it) => it.run(),
        Target::Fork(it) => it.run(),
        Target::ForkChild(it) => it.run(),
        Target::ThreadStorm(it) => it.run(),
        Target::Crash(it) => it.run(),
        Target::Hang(it) => it.run(),
        Target::Garbage(it) => it.run(),
        Target::Output(it) => it.run(),
        Target::Memory(it) => it.run(),
        Target::Switch(it) => it.run(),
        Target::Noisy(it) => it.run(),
        Target::Serve(it) => it.run(),
        Target::RequestServer(it) => it.run(),
        Target::SlowClient(it) => it.run(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Arguments;

    #[test]
    fn every_help_text_has_an_example() {
        let command = Arguments::command();
        command.clone().debug_assert();
        for target in command.get_subcommands().filter(|it| !it.is_hide_set()) {
            let help = target.clone().render_help().to_string();
            let example = format!("  concurve-targets {} ", target.get_name());
            assert!(
                help.contains(&example),
                "{} lacks an example",
                target.get_name()
            );
        }
    }
}
