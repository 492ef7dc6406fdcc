//! The engine's tests in one program: what needs a process of its own, because it forks or because it
//! counts for the whole process, stands beside it.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/crash_clients.rs"]
mod crash_clients;
#[path = "../common/damages.rs"]
mod damages;
#[path = "../common/record_model/mod.rs"]
mod record_model;
#[path = "../../../engines/tests/common/schedule.rs"]
mod schedule;
#[path = "../common/simulated.rs"]
mod simulated;
#[path = "../common/small_store.rs"]
mod small_store;

mod bank;
mod checkpoints;
mod damage;
mod failed_writes;
mod fuzz;
mod hostile_pages;
mod kill;
mod language;
mod log_in_memory;
mod model;
mod parking;
mod power_loss;
mod serialisable;
mod sessions;
mod simulation;
mod unlocked;

use concurve_fuzz::Counting;

/// It counts for each thread, so tests beside each other do not disturb its counts.
#[global_allocator]
static ALLOCATOR: Counting = Counting;
