//! The lock table against its model, by engines that are processes and by engines that are threads,
//! some of which die. A program of its own: it forks.

#[path = "common/lock_model/mod.rs"]
mod lock_model;
#[path = "../../engines/tests/common/schedule.rs"]
mod schedule;

use std::process::ExitCode;

use concurve_engines::memory::SharedAllocator;
use concurve_server::lock_table::latched::Latching;
use lock_model::{Beside, step};
use proptest::prelude::*;
use schedule::{check, in_processes, in_threads, schedules};

#[global_allocator]
static ALLOCATOR: SharedAllocator = SharedAllocator;

const ENGINES: u32 = 3;
const CASES: u32 = 200;

fn main() -> ExitCode {
    let latching = prop_oneof![Just(Latching::Global), Just(Latching::Record)];
    let case = (latching, any::<bool>(), schedules(ENGINES, 1..120, step()));
    // Before threads: a process that forks must have one thread, and a thread that was joined may
    // exist a little longer.
    let by_processes = check(CASES, &case, |(latching, blocks, history)| {
        in_processes(ENGINES, || Beside::new(*latching, *blocks), history)
    });
    let by_threads = check(CASES, &case, |(latching, blocks, history)| {
        in_threads(ENGINES, Beside::new(*latching, *blocks), history)
    });
    match by_processes.and(by_threads) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
