//! Errors below the operations, and how they reach them.

use std::io;

use thiserror::Error;

use crate::locks::{LockName, Mode};
use crate::status::Status;

/// Why an engine could not be opened, or could not continue.
#[derive(Debug, Error)]
pub enum Fault {
    #[error("cannot {what}: {source}")]
    Io { what: String, source: io::Error },
    #[error(
        "{0}: restore the folder from a copy, or save what is whole into a new folder \
         (concurve-server --service records --folder FOLDER --salvage NEW)"
    )]
    Damaged(String),
    #[error("the folder was written by a newer version ({0}): open it with that one")]
    Newer(String),
    #[error("the folder is in use by another engine: name another one, or stop that one")]
    InUse,
    #[error("{0}")]
    Definition(String),
    #[error("there is a file named {0} already: open it, or name another one")]
    Exists(String),
    #[error("all pages of the cache are in use: make the cache larger")]
    CacheFull,
    #[error("an earlier failure stopped the engine ({0}): repair the cause and open it again")]
    Stopped(String, Status),
}

impl Fault {
    /// For `map_err`: the disk failed to do `what`.
    pub(crate) fn io(what: impl FnOnce() -> String) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Io {
            what: what(),
            source,
        }
    }

    /// The same fault once more, if it is one of the disk.
    pub(crate) fn of_the_disk(&self) -> Option<Self> {
        match self {
            Fault::Io { what, source } => Some(Fault::Io {
                what: what.clone(),
                source: match source.raw_os_error() {
                    Some(code) => io::Error::from_raw_os_error(code),
                    None => io::Error::new(source.kind(), source.to_string()),
                },
            }),
            Fault::Damaged(text) => Some(Fault::Damaged(text.clone())),
            _ => None,
        }
    }

    /// The status of an operation that met it.
    pub fn status(&self) -> Status {
        match self {
            Fault::CacheFull => Status::NoCacheBuffer,
            Fault::Exists(_) => Status::FileExists,
            Fault::Io { source, .. } if is_full(source) => Status::DiskFull,
            Fault::Stopped(_, status) => *status,
            _ => Status::Io,
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Whether a write has failed, or a force to the disk: then it is not known what is there, and a later write could
/// destroy the only copy of what is half written. Kept beside what is written, under its latch: others may write
/// before the engine has stopped.
#[derive(Debug, Default)]
pub struct Failure(Option<(String, Status)>);

impl Failure {
    /// Fails if a write has failed before: nothing may be written any more.
    pub fn check(&self) -> Result<(), Fault> {
        match &self.0 {
            Some((text, status)) => Err(Fault::Stopped(text.clone(), *status)),
            None => Ok(()),
        }
    }

    /// Remembers a write that failed; returns its result.
    pub fn remember(&mut self, written: Result<(), Fault>) -> Result<(), Fault> {
        if let (Err(fault), None) = (&written, &self.0) {
            let why = match fault {
                Fault::Stopped(why, _) => why.clone(),
                fault => fault.to_string(),
            };
            self.0 = Some((why, fault.status()));
        }
        written
    }
}

/// Why a step of an operation ended early. The callers release their latches before the operation
/// waits, so that no thread waits for a lock while it holds a latch.
#[derive(Debug)]
pub enum Stop {
    Status(Status),
    /// The step must be repeated once this lock is free.
    Wait {
        name: LockName,
        mode: Mode,
        /// Keep the lock until the transaction ends; otherwise it is enough that it was free.
        keep: bool,
    },
    Fault(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Stop::Fault(fault)
    }
}

impl From<Status> for Stop {
    fn from(status: Status) -> Self {
        Stop::Status(status)
    }
}
