//! Engines in processes that share a heap. A program of its own, because its tests fork.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/crash_clients.rs"]
mod crash_clients;
#[macro_use]
#[path = "../../../engines/tests/common/forking.rs"]
mod forking;
#[path = "../common/record_model/mod.rs"]
mod record_model;
#[path = "../../../engines/tests/common/schedule.rs"]
mod schedule;
#[path = "../common/simulated.rs"]
mod simulated;

mod model_engines;
mod power_loss_engines;
mod processes;
mod program;
mod services;

use std::path::Path;
use std::process::ExitCode;

use concurve_engines::memory::SharedAllocator;

use crate::program::{FOLDER, SERVICE};

#[global_allocator]
static ALLOCATOR: SharedAllocator = SharedAllocator;

fn main() -> ExitCode {
    if let (Ok(service), Some(folder)) = (std::env::var(SERVICE), std::env::var_os(FOLDER)) {
        return services::serve(&service, Path::new(&folder));
    }
    forking::run(&tests![
        model_engines::sessions_see_what_the_model_says,
        power_loss_engines::no_acknowledged_transaction_is_lost,
        processes::a_process_that_is_killed_while_it_reads_has_held_nothing,
        processes::killed_processes_leave_a_serial_order,
        processes::locks_of_a_dead_process_are_released,
        processes::no_acknowledged_transaction_is_lost_whichever_process_is_killed,
        processes::transactions_of_processes_have_a_serial_order,
    ])
}
