//! The one error type of the targets.

use std::io;

use concurve_reporter::ReporterError;
use thiserror::Error;

/// Why a target did not do what it was asked to.
#[derive(Debug, Error)]
pub enum Error {
    /// Wrong usage; nothing was run.
    #[error("{0}")]
    Usage(String),
    #[error("cannot {action}: {source}")]
    Io { action: String, source: io::Error },
    #[error(transparent)]
    Report(#[from] ReporterError),
    /// SIGTERM or SIGINT came, or the parent died, before the work was done.
    #[error("stopped after {done} of {asked} operations")]
    Stopped { done: u64, asked: u64 },
    /// The program ran and its self-check failed.
    #[error("{0}")]
    Broken(String),
}

impl Error {
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage(_) => 2,
            _ => 1,
        }
    }
}

/// Says what was being done when an operating-system call failed.
pub trait While<T> {
    fn when(self, action: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> While<T> for Result<T, E> {
    fn when(self, action: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::Io {
            action: action(),
            source: source.into(),
        })
    }
}
