//! The one error type of the server.

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use concurve_engines::EnginesError;
use concurve_records::Fault;
use concurve_reporter::ReporterError;
use thiserror::Error;

use crate::backup::BackupError;

/// Why the server did not start, or could not continue.
#[derive(Debug, Error)]
pub enum Error {
    #[error("{0}")]
    Usage(String),
    #[error("cannot {action}: {source}")]
    Io {
        action: Cow<'static, str>,
        source: io::Error,
    },
    #[error("cannot listen on {address}: {source}{}", remedy(source))]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error(
        "the backup file holds {held} locks, too many for a table of {capacity} \
         ({refusal}): raise --capacity"
    )]
    Reload {
        held: u64,
        capacity: u64,
        refusal: String,
    },
    #[error("cannot open the records in {}: {source}", folder.display())]
    Records { folder: PathBuf, source: Fault },
    #[error("cannot save the records in {} into {}: {source}", from.display(), to.display())]
    Salvage {
        from: PathBuf,
        to: PathBuf,
        source: Fault,
    },
    #[error(
        "the record engine stopped: {0}; repair the cause and start the server again: it recovers what was \
         acknowledged"
    )]
    RecordsStopped(String),
    #[error(transparent)]
    Report(#[from] ReporterError),
    #[error(transparent)]
    Engines(#[from] EnginesError),
}

/// The remedy if the server cannot listen on the address.
fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => "; give another --port, or --port 0 for any free one",
        io::ErrorKind::AddrNotAvailable => "; --bind takes an address of this machine",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need the administrator",
        _ => "",
    }
}

impl Error {
    /// For `map_err`: the operating system refused `action`.
    pub fn io<E: Into<io::Error>>(action: impl Into<Cow<'static, str>>) -> impl FnOnce(E) -> Self {
        let action = action.into();
        move |source| Error::Io {
            action,
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
