//! Services for the tests: `SERVICE threads|processes ENGINES FOLDER [MIB]`.
//!
//! Prints one line for each event to standard error. Exit codes: 0 ended in order, 1 otherwise.

mod bank;
mod collections;
mod events;
mod misbehaving;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use concurve_engines::memory::SharedAllocator;
use concurve_engines::{Mode, Plan, Service, serve};

#[global_allocator]
static ALLOCATOR: SharedAllocator = SharedAllocator;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [service, mode, engines, folder, rest @ ..] = &arguments[..] else {
        panic!("SERVICE threads|processes ENGINES FOLDER [MIB]")
    };
    if service == "thread-panics" {
        concurve_engines::end_at_panics("error");
    }
    let mode = match mode.as_str() {
        "threads" => Mode::Threads,
        "processes" => Mode::Processes,
        other => panic!("'{other}' is neither threads nor processes"),
    };
    let megabytes: usize = rest.first().map_or(256, |it| it.parse().expect("MiB"));
    let plan = Plan {
        mode,
        engines: engines.parse().expect("a number of engines"),
        memory_bytes: megabytes << 20,
        memory_remedy: "raise --shared-memory",
        // The test kills engines of the bank.
        quick_deaths_max: if service == "bank" { 1000 } else { 5 },
        stop_within: Duration::from_secs(if service == "ignores-stop" { 1 } else { 120 }),
    };
    let folder = PathBuf::from(folder);
    match service.as_str() {
        "collections" => run(
            &plan,
            &collections::Collections {
                engines: plan.engines,
            },
        ),
        "bank" => run(&plan, &bank::Bank { folder }),
        other => run(&plan, &misbehaving::Misbehaving::new(other, folder)),
    }
}

fn run<S: Service>(plan: &Plan, service: &S) -> ExitCode {
    match serve(plan, service) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
