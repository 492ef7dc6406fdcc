//! Engines that share a lock table. A program of its own, because its tests fork.

#[macro_use]
#[path = "../../../engines/tests/common/forking.rs"]
mod forking;
#[path = "../common/lock_model/mod.rs"]
mod lock_model;
#[path = "../../../engines/tests/common/schedule.rs"]
mod schedule;

mod lock_engines;
mod lock_model_engines;

use std::process::ExitCode;

use concurve_engines::memory::SharedAllocator;

#[global_allocator]
static ALLOCATOR: SharedAllocator = SharedAllocator;

fn main() -> ExitCode {
    forking::run(&tests![
        lock_engines::no_two_owners_hold_locks_that_exclude_each_other,
        lock_model_engines::engines_answer_as_the_model,
    ])
}
