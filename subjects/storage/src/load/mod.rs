//! The load of document 003: loaders take export files, the biggest first, and have a savepoint
//! made after each table; two closing jobs read what was loaded.
//!
//! Loaders are processes, as in the document, or threads, where a database lives in one process.

mod closing;
mod file;
mod processes;
mod threads;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::database::Database;
use crate::error::Error;
use crate::export::{Content, ExportFile, Manifest};

pub use processes::{Launch, be_a_loader};

/// A table that was loaded, and how long it took.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Loaded {
    pub table: String,
    pub content: Content,
    /// From its first row to its commit.
    pub loading: Duration,
    pub savepoint: Duration,
}

/// What a loader did.
#[derive(Debug)]
pub struct Loader {
    /// In the order of their ends.
    pub tables: Vec<Loaded>,
    /// From its start until it found no file left.
    pub took: Duration,
}

/// What a load came to.
#[derive(Debug)]
pub struct Outcome {
    pub loaders: Vec<Loader>,
    pub loading: Duration,
    /// From the start of the load to the end of the closing jobs.
    pub whole: Duration,
}

impl Outcome {
    /// Loader by loader.
    pub fn tables(&self) -> impl Iterator<Item = &Loaded> {
        self.loaders.iter().flat_map(|it| &it.tables)
    }
}

/// How many load at the same time, and what they are.
#[derive(Debug, Clone)]
pub struct Loaders {
    pub count: usize,
    /// How one is started as a process; else they are threads.
    pub processes: Option<Launch>,
}

impl Loaders {
    /// What they are, in a word.
    pub fn are(&self) -> &'static str {
        match self.processes {
            Some(_) => "processes",
            None => "threads",
        }
    }
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
    loaders: &Loaders,
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
    let done = at_once("loader", loaders.count, |number| {
        shared.load(loaders, number)
    })?;
    let loading = begun.elapsed();
    phase("closing")?;
    at_once("closing", closing::JOBS.len(), |number| {
        closing::JOBS[number](database, &done)
    })?;
    Ok(Outcome {
        loaders: done,
        loading,
        whole: begun.elapsed(),
    })
}

impl<'a> Shared<'a> {
    /// The life of a loader, seen from here.
    fn load(&self, loaders: &Loaders, number: usize) -> Result<Loader, Error> {
        let begun = Instant::now();
        let done = match &loaders.processes {
            Some(launch) => processes::load(self, launch, number),
            None => threads::load(self, number),
        };
        if done.is_err() {
            self.has_failed.store(true, Relaxed);
        }
        Ok(Loader {
            tables: done?,
            took: begun.elapsed(),
        })
    }

    /// The biggest file that is left; none once a loader has failed.
    fn next_file(&self) -> Option<&'a ExportFile> {
        if self.has_failed() {
            return None;
        }
        self.left.lock().expect("no loader panics").pop()
    }

    fn has_failed(&self) -> bool {
        self.has_failed.load(Relaxed)
    }
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
