//! The engine against its model, by sessions in processes and by such in threads of their own, with
//! deaths of some. A program of its own: it forks.

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
    // Before threads: a thread that was joined may be there a moment longer, and who forks must have
    // one alone.
    let by_processes = check(CASES, &case, |(latching, restarts, history)| {
        let case = Case::new(*latching, *restarts);
        in_processes(ENGINES, || case.open(Engine::open_shared), history)
    });
    let by_threads = check(CASES, &case, |(latching, restarts, history)| {
        let case = Case::new(*latching, *restarts);
        in_threads(ENGINES, case.open(Engine::open), history)
    });
    match by_processes.and(by_threads) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
