//! The one error type of the targets.

use std::io;

use concurve_reporter::ReporterError;
use thiserror::Error;

/// Why a target failed.
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
    /// For `map_err`: the operating system refused `action`.
    pub fn io<E: Into<io::Error>>(action: impl FnOnce() -> String) -> impl FnOnce(E) -> Self {
        move |source| Self::Io {
            action: action(),
            source: source.into(),
        }
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage(_) => 2,
            _ => 1,
        }
    }
}
