//! The one error type of the simulator.

use std::path::PathBuf;

use concurve_reporter::ReporterError;
use thiserror::Error;

use crate::workload::trace::TraceError;

/// Why nothing was simulated.
#[derive(Debug, Error)]
pub enum Error {
    #[error("{0}")]
    Usage(String),
    #[error("cannot simulate the trace {}: {source}", path.display())]
    Trace { path: PathBuf, source: TraceError },
    #[error(transparent)]
    Report(#[from] ReporterError),
}

impl Error {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Trace { .. } | Self::Report(_) => 1,
        }
    }
}
