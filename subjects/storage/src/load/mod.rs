//! The load of document 003: loaders take export files, the biggest first, and make a savepoint
//! after each table; then two closing jobs verify the database.
//!
//! Loaders are processes, as in the document, or threads, if the database allows only one process.

mod loader;
mod processes;
mod verify;

use std::thread;
use std::time::{Duration, Instant};

use crate::database::Database;
use crate::error::Error;
use crate::export::Manifest;
use loader::Shared;

pub use loader::{Loaded, Loader};
pub use processes::{Launch, run_loader};

/// The results of a load.
#[derive(Debug)]
pub struct Outcome {
    pub loaders: Vec<Loader>,
    pub loading: Duration,
    /// From the start of the load to the end of the closing jobs.
    pub whole: Duration,
}

impl Outcome {
    /// The tables of all loaders, loader by loader.
    pub fn tables(&self) -> impl Iterator<Item = &Loaded> {
        self.loaders.iter().flat_map(|it| &it.tables)
    }
}

/// The number and the kind of loaders.
#[derive(Debug, Clone)]
pub struct Loaders {
    pub count: usize,
    /// How a loader process is started; `None`: loaders are threads.
    pub processes: Option<Launch>,
}

impl Loaders {
    /// `processes` or `threads`.
    pub fn are(&self) -> &'static str {
        match self.processes {
            Some(_) => "processes",
            None => "threads",
        }
    }
}

/// Loads an export set, and verifies the database. Calls `phase` at the begin of each phase.
///
/// # Errors
/// The first failure; also a table that differs in the database from the export.
pub fn run(
    manifest: &Manifest,
    database: &dyn Database,
    loaders: &Loaders,
    mut phase: impl FnMut(&'static str) -> Result<(), Error>,
) -> Result<Outcome, Error> {
    let shared = Shared::new(database, manifest);
    let begun = Instant::now();
    phase("loading")?;
    let done = run_threads("loader", loaders.count, |number| {
        run_one(&shared, loaders, number)
    })?;
    let loading = begun.elapsed();
    phase("closing")?;
    run_threads("closing", verify::JOBS.len(), |number| {
        verify::JOBS[number](database, &done)
    })?;
    Ok(Outcome {
        loaders: done,
        loading,
        whole: begun.elapsed(),
    })
}

/// Runs one loader, as a thread or a process.
fn run_one(shared: &Shared, loaders: &Loaders, number: usize) -> Result<Loader, Error> {
    let begun = Instant::now();
    let done = match &loaders.processes {
        Some(launch) => processes::load(shared, launch, number),
        None => loader::load_in_thread(shared, number),
    };
    if done.is_err() {
        shared.fail();
    }
    Ok(Loader {
        tables: done?,
        took: begun.elapsed(),
    })
}

/// Runs threads, and returns the results of all or the first error.
fn run_threads<T: Send>(
    name: &str,
    count: usize,
    work: impl Fn(usize) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|number| {
                thread::Builder::new()
                    .name(format!("{name}-{}", number + 1))
                    .spawn_scoped(scope, move || work(number))
                    .expect("a thread starts")
            })
            .collect();
        let ends = threads.into_iter().map(|it| it.join().expect("no panic"));
        ends.collect()
    })
}
