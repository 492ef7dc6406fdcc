//! The one error type of the simulator.

use concurve_wire::reporter::ReporterError;
use thiserror::Error;

/// Why nothing was simulated.
#[derive(Debug, Error)]
pub enum Error {
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Report(#[from] ReporterError),
}

impl Error {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Report(_) => 1,
        }
    }
}
