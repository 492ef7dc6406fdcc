//! Runs the program: options → workload → simulation → report.

use std::io::{BufReader, Write, stdout};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use concurve_reporter::Reporter;

use crate::cli::{LoadOptions, Options, StreamOptions, TraceOptions, Workload, between};
use crate::error::Error;
use crate::event_file::EventFile;
use crate::machine::Machine;
use crate::report;
use crate::request::{Direction, Priority};
use crate::simulation::Simulation;
use crate::workload::Process;
use crate::workload::load::{self, Load};
use crate::workload::synthetic::{Pace, Pattern, Stream};
use crate::workload::trace;

/// Runs the program and prints its errors to standard error; returns the exit code.
pub fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("concurve-disk: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(options: &Options) -> Result<(), Error> {
    let reporter = Reporter::from_environment()?;
    let (machine, processes) = match &options.workload {
        Workload::Load(options) => loading(options)?,
        Workload::Streams(options) => streaming(options)?,
        Workload::Trace(options) => replaying(options)?,
    };
    let events = options.events.as_deref().map(EventFile::open).transpose()?;
    let begun = Instant::now();
    reporter.begin("measure")?;
    let simulation = Simulation::new(&machine, processes);
    let account = match events {
        Some(mut events) => {
            events.disks(&machine, simulation.cylinders());
            simulation.run_told(events)?
        }
        None => simulation.run(),
    };
    reporter.end("measure")?;
    report::report(&machine, &account, &reporter)?;
    let table = report::table(&machine, &account, begun.elapsed());
    stdout()
        .write_all(table.as_bytes())
        .and_then(|()| stdout().flush())
        .map_err(Error::Output)
}

type Prepared = (Machine, Vec<Box<dyn Process>>);

fn loading(options: &LoadOptions) -> Result<Prepared, Error> {
    between("--scale", options.scale, 1e-4, 1.0)?;
    let machine = options.machine.machine()?;
    let load = Load {
        loaders: options.loaders,
        ..Load::of_document(options.scale, options.seed)
    };
    let assumptions = options.assumptions()?;
    let processes = load::processes(&load, &assumptions, machine.sectors())?;
    Ok((machine, processes))
}

fn replaying(options: &TraceOptions) -> Result<Prepared, Error> {
    let machine = options.machine.machine()?;
    let read = || {
        let text = BufReader::new(concurve_files::open_named(&options.file)?);
        trace::processes(text, machine.sectors())
    };
    let processes = read().map_err(|source| Error::Trace {
        path: options.file.clone(),
        source,
    })?;
    Ok((machine, processes))
}

fn streaming(options: &StreamOptions) -> Result<Prepared, Error> {
    let machine = options.machine.machine()?;
    let streams = streams(options, machine.sectors())?;
    if streams.is_empty() {
        let text = "nothing to do: give --sequential-readers, --random-readers or --writers";
        return Err(Error::Usage(text.into()));
    }
    let processes = streams.into_iter().map(Stream::process).collect();
    Ok((machine, processes))
}

fn streams(options: &StreamOptions, sectors: u64) -> Result<Vec<Stream>, Error> {
    let think = options.think()?;
    let closed = |depth: usize| Pace::Closed { depth, think };
    let kinds = [
        (
            options.sequential_readers,
            Pattern::Sequential,
            Direction::Read,
        ),
        (options.random_readers, Pattern::Random, Direction::Read),
        (options.writers, Pattern::Sequential, Direction::Write),
    ];
    let all: u32 = kinds.iter().map(|it| it.0).sum();
    let room = sectors / u64::from(all.max(1));
    let mut streams = Vec::new();
    for (count, pattern, direction) in kinds {
        for _ in 0..count {
            let number = streams.len() as u64;
            streams.push(Stream {
                pattern,
                pace: closed(usize::from(options.depth)),
                direction,
                sync: direction == Direction::Read,
                sectors: options.request_kib * 2,
                range: match pattern {
                    Pattern::Sequential => (room * number, room),
                    Pattern::Random => (0, sectors),
                },
                requests: options.requests,
                priority: match direction {
                    Direction::Read => Priority::of_nice(options.reader_class, options.reader_nice),
                    Direction::Write => Priority::NORMAL,
                },
                seed: options.seed.wrapping_add(number),
            });
        }
    }
    Ok(streams)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean time of a read beside four writers, in milliseconds.
    fn read_ms(scheduler: &str, reader: [&str; 2]) -> f64 {
        let words =
            "disk streams --disks 1 --random-readers 1 --writers 4 --depth 32 --requests 400";
        let options = Options::parse_from(
            words
                .split(' ')
                .chain(["--scheduler", scheduler])
                .chain(reader),
        );
        let Workload::Streams(options) = &options.workload else {
            unreachable!("it says streams");
        };
        let (machine, processes) = streaming(options).unwrap();
        Simulation::new(&machine, processes).run().mean_read() / 1e6
    }

    #[test]
    fn cfq_serves_readers_by_class_and_nice_level_and_noop_does_not() {
        let (first, last) = (["--reader-nice", "-20"], ["--reader-nice", "19"]);
        let (real_time, idle) = (["--reader-class", "real-time"], ["--reader-class", "idle"]);
        for (ahead, behind) in [(first, last), (real_time, idle)] {
            assert!(read_ms("cfq", ahead) < 0.9 * read_ms("cfq", behind));
            assert!((read_ms("noop", ahead) - read_ms("noop", behind)).abs() < 1e-9);
        }
    }
}
