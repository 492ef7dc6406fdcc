//! The state of the services over the record engine.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use concurve_records::salvage::salvage_folder;
use concurve_records::storage::{Folder, Storage};
use concurve_records::{Checkpointer, Engine, Fault, Recovered};

use crate::error::Error;

/// Opens the storage of a folder.
pub type OpenStorage = fn(&Path) -> Result<Arc<dyn Storage>, Fault>;

/// The folder itself.
///
/// # Errors
/// As [`Folder::open`].
pub fn open_folder(path: &Path) -> Result<Arc<dyn Storage>, Fault> {
    Ok(Arc::new(Folder::open(path)?))
}

/// Where records are kept, and how.
#[derive(Debug, Clone)]
pub struct RecordOptions {
    pub folder: PathBuf,
    /// How the folder is opened: tests let calls of the disk fail.
    pub storage: OpenStorage,
    /// Into which folder to save what is whole, instead of serving.
    pub salvage: Option<PathBuf>,
    pub engine: concurve_records::EngineOptions,
}

/// Saves what is whole in a damaged folder into a new one, and prints what that is.
///
/// # Errors
/// If the folder cannot be read, or the new one not written.
pub fn save(options: &RecordOptions, to: &Path) -> Result<(), Error> {
    let from = &options.folder;
    let saved = salvage_folder(from, to).map_err(|source| Error::Salvage {
        from: from.clone(),
        to: to.to_owned(),
        source,
    })?;
    let mut lines = String::new();
    for file in &saved.files {
        lines += &format!("saved {}: {} records", file.name, file.records);
        if file.refused > 0 {
            let why = "left out, because others have the same value of a key without duplicates";
            lines += &format!(", {} {why}", file.refused);
        }
        lines += "\n";
    }
    for note in &saved.notes {
        lines += &format!("not saved: {note}\n");
    }
    lines += &format!(
        "the new folder is {}; {} is as it was\n",
        to.display(),
        from.display()
    );
    let printed = std::io::stdout().write_all(lines.as_bytes());
    printed.map_err(Error::io("write what was saved to standard output"))
}

/// The record engine, and what its recovery did at the start.
#[derive(Debug)]
pub struct RecordService {
    pub engine: Engine,
    pub recovered: Recovered,
}

impl RecordService {
    /// Opens the folder, and recovers what a crash has left.
    ///
    /// # Errors
    /// If the folder cannot be used.
    pub fn open(options: &RecordOptions) -> Result<Self, Error> {
        let storage = (options.storage)(&options.folder);
        let opened = storage.and_then(|it| Engine::open_shared_in(it, options.engine.clone()));
        let (engine, recovered) = opened.map_err(|source| Error::Records {
            folder: options.folder.clone(),
            source,
        })?;
        Ok(Self { engine, recovered })
    }

    /// Starts the thread that makes checkpoints, until the result is dropped.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start_checkpointer(&self) -> Result<Checkpointer, Error> {
        let started = self.engine.start_checkpointer();
        started.map_err(|fault| Error::RecordsStopped(fault.to_string()))
    }

    /// The figures of the engine by name.
    pub fn figures(&self) -> Vec<(&'static str, u64)> {
        let mut figures = self.engine.statistics().named().to_vec();
        figures.push(("locks", self.engine.locks() as u64));
        figures.push(("waiting", self.engine.waiting() as u64));
        figures
    }

    /// Fails if the engine has stopped after a fault.
    ///
    /// # Errors
    /// Why it has.
    pub fn check(&self) -> Result<(), Error> {
        match self.engine.failure() {
            Some(why) => Err(Error::RecordsStopped(why)),
            None => Ok(()),
        }
    }

    /// Closes the engine, so that the next start has nothing to recover.
    ///
    /// # Errors
    /// If the engine has stopped before, or cannot be closed.
    pub fn close(self) -> Result<(), Error> {
        self.check()?;
        let closed = self.engine.close();
        closed.map_err(|fault| Error::RecordsStopped(fault.to_string()))
    }
}
