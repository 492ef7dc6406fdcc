//! Errors of the backup file.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::record::HEADER;

#[derive(Debug, Error)]
pub enum BackupError {
    #[error("backup file {path}: cannot {action}: {source}")]
    Io {
        path: PathBuf,
        action: &'static str,
        source: io::Error,
    },
    #[error(
        "{path} is not a backup file of concurve-server: it does not begin with {:?}; name another file",
        String::from_utf8_lossy(HEADER)
    )]
    Foreign { path: PathBuf },
    #[error(
        "backup file {path} is damaged at byte {at}, and {after} whole records follow, so a crash \
        during a write is not the cause: restore it from a copy, or move it away and start without its locks"
    )]
    Damaged { path: PathBuf, at: u64, after: u64 },
    #[error("{path} cannot be the backup file, because it is {what}: name a regular file")]
    NotAFile { path: PathBuf, what: &'static str },
    #[error(
        "backup file {path} is damaged or cut: its whole records end at byte {at}, and it had {length} \
        bytes: restore it from a copy, or move it and {path}.new away and start without its locks"
    )]
    Cut { path: PathBuf, at: u64, length: u64 },
    #[error(
        "backup file {path} is missing or empty at byte 0, though a server that used it has left \
        {path}.new: restore it from a copy, or move {path}.new away and start without locks"
    )]
    Missing { path: PathBuf },
    #[error("backup file {path} is in use by another server; name another file, or stop that one")]
    InUse { path: PathBuf },
}

/// Wraps the error of an action on a file.
pub fn failed(path: &Path, action: &'static str, source: io::Error) -> BackupError {
    let path = path.to_owned();
    BackupError::Io {
        path,
        action,
        source,
    }
}
