//! The one error of this crate, and the exit codes.

use std::process::ExitCode;

/// Why no record was written.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The spec is invalid; the message names the key and the remedy.
    #[error("invalid spec: {0}")]
    Spec(String),
    /// The host refused something before any role ran.
    #[error("{what}: {source}")]
    Host {
        what: &'static str,
        source: concurve_probe::ProbeError,
    },
    /// A violated assumption of the program.
    #[error("{0}; please report it")]
    Internal(String),
}

impl TrialError {
    /// 2: the spec; 3: the host; 4: internal.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Spec(_) => ExitCode::from(2),
            Self::Host { .. } => ExitCode::from(3),
            Self::Internal(_) => ExitCode::from(4),
        }
    }
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, TrialError>;

/// Names what was tried when the host refuses it.
pub trait OnHost<T> {
    fn on_host(self, what: &'static str) -> Result<T>;
}

impl<T> OnHost<T> for concurve_probe::Result<T> {
    fn on_host(self, what: &'static str) -> Result<T> {
        self.map_err(|source| TrialError::Host { what, source })
    }
}

impl<T> OnHost<T> for nix::Result<T> {
    fn on_host(self, what: &'static str) -> Result<T> {
        self.map_err(|errno| concurve_probe::ProbeError::system("system call", errno))
            .on_host(what)
    }
}
