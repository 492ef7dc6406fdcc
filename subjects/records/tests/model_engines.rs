//! Compares the engine with its model, with sessions in several processes or threads, some of which
//! die. A program of its own, because it forks.

mod common;
#[path = "common/record_model/mod.rs"]
mod record_model;
#[path = "../../engines/tests/common/schedule.rs"]
mod schedule;

use std::process::ExitCode;

use common::LATCHINGS;
use concurve_engines::memory::SharedAllocator;
use concurve_records::Engine;
use proptest::prelude::*;
use record_model::{Case, SESSIONS, step};
use schedule::{check, in_processes, in_threads, schedules};

#[global_allocator]
static ALLOCATOR: SharedAllocator = SharedAllocator;

const CASES: u32 = 40;
const ENGINES: u32 = SESSIONS as u32;

fn main() -> ExitCode {
    let case = (
        proptest::sample::select(&LATCHINGS),
        any::<bool>(),
        schedules(ENGINES, 1..250, step()),
    );
    // Before threads: a joined thread may still exist for a short time, and a process with several
    // threads must not fork.
    let by_processes = check(CASES, &case, |(latching, restarts, schedule)| {
        let case = Case::new(*latching, *restarts);
        in_processes(ENGINES, || case.open(Engine::open_shared), schedule)
    });
    let by_threads = check(CASES, &case, |(latching, restarts, schedule)| {
        let case = Case::new(*latching, *restarts);
        in_threads(ENGINES, case.open(Engine::open), schedule)
    });
    match by_processes.and(by_threads) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
