//! The load of document 003: processes that load tables into a database, a savepoint after each,
//! and two jobs that read what was loaded.
//!
//! The document says what is loaded, by how many, and when savepoints are made. It does not say
//! how the database writes; that is in [`Assumptions`], and how much depends on each of them
//! is what the study asks.

mod database;
mod jobs;
mod plan;
pub mod tables;
mod writers;

use std::cell::RefCell;
use std::rc::Rc;

use super::Process;
use crate::error::Error;
use database::{Database, Places};
use jobs::{ClosingJob, Loader};
pub use plan::{Assumptions, Load, Writing};
use writers::{WriteBack, Writer};

/// The processes of a load on a volume of so many sectors: the loaders, the database's writers
/// (one a volume), write-back, and the closing jobs.
///
/// # Errors
/// Usage: the data volumes, the log and the exports do not fit.
pub fn processes(
    load: &Load,
    assumptions: &Assumptions,
    sectors: u64,
) -> Result<Vec<Box<dyn Process>>, Error> {
    let places = Places::of(load);
    let database = Database::new(load, assumptions.clone(), sectors, places.clone())?;
    let shared = Rc::new(RefCell::new(database));
    let mut processes: Vec<Box<dyn Process>> = Vec::new();
    for number in 0..load.loaders as usize {
        processes.push(Box::new(Loader::new(shared.clone(), number)));
    }
    for volume in 0..load.volumes as usize {
        processes.push(Box::new(Writer::new(shared.clone(), volume)));
    }
    processes.push(Box::new(WriteBack::new(shared.clone())));
    for _ in &places.closing {
        processes.push(Box::new(ClosingJob::new(shared.clone())));
    }
    Ok(processes)
}
