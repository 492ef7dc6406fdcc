//! The load of document 003: loaders take export files, the biggest first, and have a savepoint
//! made after each table; two closing jobs read what was loaded.
//!
//! Loaders are threads. To the kernel's I/O schedulers a thread is a process of its own, and an
//! embedded database lives in one process.

mod closing;
mod loader;

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use crate::database::Database;
use crate::error::Error;
use crate::export::{Content, ExportFile, Manifest};

/// A table that was loaded, by whom, and how long it took.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub table: String,
    pub loader: usize,
    pub content: Content,
    /// From its first row to its commit.
    pub loading: Duration,
    pub savepoint: Duration,
}

/// What a load came to.
#[derive(Debug)]
pub struct Outcome {
    /// In the order of their ends, loader by loader.
    pub tables: Vec<Loaded>,
    /// When each loader found no file left.
    pub loaders: Vec<Duration>,
    pub loading: Duration,
    /// From the start of the load to the end of the closing jobs.
    pub whole: Duration,
}

/// What the loaders share.
struct Shared<'a> {
    database: &'a dyn Database,
    manifest: &'a Manifest,
    /// Files that nobody has taken yet; the biggest is the last.
    left: Mutex<Vec<&'a ExportFile>>,
    /// One has failed: the others need not go on.
    has_failed: AtomicBool,
}

/// Loads an export set and reads it again.
///
/// # Errors
/// The first thing that went wrong, a table that is not in the database as it was exported among
/// them.
pub fn run(
    manifest: &Manifest,
    database: &dyn Database,
    loaders: usize,
    mut phase: impl FnMut(&'static str) -> Result<(), Error>,
) -> Result<Outcome, Error> {
    let shared = Shared {
        database,
        manifest,
        left: Mutex::new(manifest.files.iter().rev().collect()),
        has_failed: AtomicBool::new(false),
    };
    let begun = Instant::now();
    phase("loading")?;
    let by_loader = at_once("loader", loaders, |number| loader::load(&shared, number))?;
    let loading = begun.elapsed();
    phase("closing")?;
    let (ends, tables): (Vec<Duration>, Vec<Vec<Loaded>>) = by_loader.into_iter().unzip();
    at_once("closing", closing::JOBS.len(), |number| {
        closing::JOBS[number](database, &tables)
    })?;
    Ok(Outcome {
        tables: tables.into_iter().flatten().collect(),
        loaders: ends,
        loading,
        whole: begun.elapsed(),
    })
}

/// Runs threads, and returns what all of them did or the first error.
fn at_once<T: Send>(
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
