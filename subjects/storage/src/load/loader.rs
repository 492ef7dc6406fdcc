//! A loader: takes files of the export set and loads their tables, with a savepoint after each.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::database::{Database, DatabaseSession};
use crate::error::Error;
use crate::export::{Content, Export, ExportFile, Manifest};

/// A loaded table, and how long it took.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Loaded {
    pub table: String,
    pub content: Content,
    /// From its first row to its commit.
    pub loading: Duration,
    pub savepoint: Duration,
}

/// The results of a loader.
#[derive(Debug)]
pub struct Loader {
    /// In the order in which they were loaded.
    pub tables: Vec<Loaded>,
    /// From its start until it found no file left.
    pub took: Duration,
}

/// The shared state of the loaders.
pub struct Shared<'a> {
    pub database: &'a dyn Database,
    pub manifest: &'a Manifest,
    /// Files that no loader has taken yet; the biggest is the last.
    left: Mutex<Vec<&'a ExportFile>>,
    /// A loader has failed: the others stop.
    has_failed: AtomicBool,
}

impl<'a> Shared<'a> {
    pub fn new(database: &'a dyn Database, manifest: &'a Manifest) -> Self {
        Self {
            database,
            manifest,
            left: Mutex::new(manifest.files.iter().rev().collect()),
            has_failed: AtomicBool::new(false),
        }
    }

    /// Stops the loaders, because one has failed.
    pub fn fail(&self) {
        self.has_failed.store(true, Relaxed);
    }

    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Relaxed)
    }

    /// Takes the biggest file that is left; `None` after a failure.
    pub fn next_file(&self) -> Option<&'a ExportFile> {
        if self.has_failed() {
            return None;
        }
        self.left.lock().expect("no loader panics").pop()
    }
}

/// Loads files in this thread until none is left, or another loader has failed.
pub fn load_in_thread(shared: &Shared, number: usize) -> Result<Vec<Loaded>, Error> {
    let mut session = shared.database.connect(number)?;
    let mut loaded = Vec::new();
    while let Some(next) = shared.next_file() {
        let path = shared.manifest.folder.join(&next.name);
        let _ = load_file(&mut *session, &path, &mut |table| {
            loaded.push(table);
            Ok(match shared.has_failed() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        })?;
    }
    Ok(loaded)
}

/// Loads the tables of a file, and calls `report` for each; stops if that returns `Break`.
pub fn load_file(
    session: &mut dyn DatabaseSession,
    path: &Path,
    report: &mut dyn FnMut(Loaded) -> Result<ControlFlow<()>, Error>,
) -> Result<ControlFlow<()>, Error> {
    let mut export = Export::open(path)?;
    while let Some(table) = export.next_table()? {
        if report(load_table(session, table, &mut export)?)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn load_table(
    session: &mut dyn DatabaseSession,
    table: String,
    export: &mut Export,
) -> Result<Loaded, Error> {
    let begun = Instant::now();
    session.load(&table, export)?;
    let loading = begun.elapsed();
    session.savepoint()?;
    Ok(Loaded {
        table,
        content: export.read(),
        loading,
        savepoint: begun.elapsed() - loading,
    })
}
