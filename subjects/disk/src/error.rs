//! The errors of the simulator.

use std::io;
use std::path::PathBuf;

use concurve_reporter::ReporterError;
use thiserror::Error;

/// Why nothing was simulated, or cannot be shown.
#[derive(Debug, Error)]
pub enum Error {
    #[error("{0}")]
    Usage(String),
    #[error("cannot simulate the trace {}: {source}", path.display())]
    Trace { path: PathBuf, source: TraceError },
    #[error("the events cannot be written to {}: {source}; name a writable file with --events", path.display())]
    Events { path: PathBuf, source: io::Error },
    #[error("standard output: {0}; write to another place, or free disk space")]
    Output(#[source] io::Error),
    #[error(transparent)]
    Report(#[from] ReporterError),
}

/// Why a trace cannot be simulated.
#[derive(Debug, Error)]
pub enum TraceError {
    #[error("{0}")]
    Read(#[from] io::Error),
    #[error(
        "no line is a request that was queued (action Q): give the text that blkparse prints in its own format"
    )]
    Empty,
    #[error("it has requests on {0} and on {1}: record one device")]
    Devices(String, String),
    #[error(
        "line {line}: sector {sector} is beyond the {sectors} of the simulated volume: more --disks"
    )]
    Beyond {
        line: usize,
        sector: u64,
        sectors: u64,
    },
}

impl Error {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Trace { .. } | Self::Events { .. } | Self::Output(_) | Self::Report(_) => 1,
        }
    }
}
