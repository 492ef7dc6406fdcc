//! The one error type of the server.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use concurve_engines::EnginesError;
use concurve_records::Fault;
use concurve_reporter::ReporterError;
use thiserror::Error;

use crate::backup::BackupError;

/// Why the server did not start, or could not go on.
#[derive(Debug, Error)]
pub enum Error {
    #[error("{0}")]
    Usage(String),
    #[error("cannot {action}: {source}")]
    Io { action: String, source: io::Error },
    #[error("cannot listen on {address}: {source}{}", remedy(source))]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error(
        "the backup file holds {held} locks that do not go into a table of {capacity} \
         ({refusal}): raise --capacity"
    )]
    Reload {
        held: u64,
        capacity: u64,
        refusal: String,
    },
    #[error("cannot open the records in {}: {source}", folder.display())]
    Records { folder: PathBuf, source: Fault },
    #[error("the record engine stopped: {0}")]
    RecordsStopped(String),
    #[error(transparent)]
    Report(#[from] ReporterError),
    #[error(transparent)]
    Engines(#[from] EnginesError),
}

/// What to try where nobody can listen.
fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => "; give another --port, or --port 0 for any free one",
        io::ErrorKind::AddrNotAvailable => "; --bind takes an address of this machine",
        io::ErrorKind::PermissionDenied => "; ports below 1024 are for the administrator",
        _ => "",
    }
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
