//! The backup file behind a latch, shared by the engines of the lock service.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use concurve_latch::{Class, Mutex, MutexGuard};

use super::error::BackupError;
use super::file::{BackupFile, Durability};
use super::held::LoadedBackup;
use crate::monitor::meter::{Meter, State};

/// A backup file behind a latch.
#[derive(Debug)]
pub struct BackupLog {
    file: Mutex<BackupFile>,
    /// Some records are not in the file yet.
    is_pending: AtomicBool,
    /// What was found at the start.
    pub loaded: LoadedBackup,
}

impl BackupLog {
    /// Opens or creates the file.
    ///
    /// # Errors
    /// If it cannot be used, or is damaged.
    pub fn open(path: &Path, durability: Durability) -> Result<Self, BackupError> {
        let (file, loaded) = BackupFile::open(path, durability)?;
        Ok(Self {
            file: Class::named("backup file").mutex(file),
            is_pending: AtomicBool::new(false),
            loaded,
        })
    }

    pub fn file(&self) -> MutexGuard<'_, BackupFile> {
        self.file.lock()
    }

    /// Records changes; [`BackupLog::commit`] writes them to the file.
    pub fn note(&self, write: impl FnOnce(&mut BackupFile)) {
        let mut file = self.file.lock();
        write(&mut file);
        self.is_pending.store(true, Relaxed);
    }

    /// Whether some records are not in the file yet. No reply may be sent then: it may depend on a
    /// lock that another engine has recorded.
    pub fn is_pending(&self) -> bool {
        self.is_pending.load(Relaxed)
    }

    /// Writes all pending records to the file, if there are any.
    ///
    /// # Errors
    /// If that fails. No further request may be answered: the server must stop.
    pub fn commit(&self, meter: &Meter) -> Result<(), BackupError> {
        if !self.is_pending() {
            return Ok(());
        }
        let mut file = self.file.lock();
        meter.during(State::Disk, || file.commit())?;
        // Under the latch, so that no record is added in between: a thread that finds nothing
        // pending sends replies at once, and its own records must be in the file by then.
        self.is_pending.store(false, Relaxed);
        Ok(())
    }

    /// How often the file was compacted.
    pub fn compactions(&self) -> u64 {
        self.file.lock().compactions
    }

    /// Ends the use of the file.
    pub fn end(self) {
        self.file.into_inner().end();
    }
}
