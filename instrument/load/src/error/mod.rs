//! The errors of the load generator, as the user reads them.

mod together;

use std::io;
use std::path::PathBuf;

use concurve_reporter::ReporterError;
use nix::sys::signal::Signal;

use crate::admin::AdminError;
use crate::dataset::{DatasetError, VerifyError};
use crate::engine::EngineError;
use crate::protocol::ProtocolError;
use crate::workload::WorkloadError;

pub use together::{Refusal, TogetherError};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Options that cannot be used.
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    #[error("cannot connect session {session} to {server}: {source}; {remedy}")]
    Connect {
        session: u64,
        server: String,
        source: io::Error,
        remedy: &'static str,
    },
    #[error(
        "no session is left: all {sessions} lost their connection to {server} ({why}); {figures}; what does the server's log say, and is it the right port?"
    )]
    AllLost {
        sessions: u64,
        server: String,
        why: String,
        figures: &'static str,
    },
    #[error("session {session} at {server}: {source}")]
    Protocol {
        session: u64,
        server: String,
        source: ProtocolError,
    },
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error("{server}: {why}; --mark-phase is for concurve-server alone")]
    MarkPhase { server: String, why: AdminError },
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    #[error("cannot wait for the connections: {0}")]
    Poll(#[source] io::Error),
    #[error("cannot start client thread {0}: {1}")]
    Thread(u64, #[source] io::Error),
    #[error("cannot start client process {0}: {1}")]
    Process(u64, #[source] io::Error),
    #[error("client process {0} failed; see its message above")]
    ProcessFailed(u64),
    #[error("a client thread ended unexpectedly; see its message above")]
    ThreadFailed,
    #[error("stopped before the sessions were connected")]
    Stopped,
    #[error(
        "{server}: --prefill did not set all keys: {why}; look at the server, or fill it by other means"
    )]
    NotFilled { server: String, why: String },
    #[error("stopped while the greatest rate was measured, before the load at a share of it")]
    StoppedBeforeRate,
    #[error(
        "--rate {share} of the greatest rate: {why} in the closed loop that was to show it; look at the server, or give --rate as a number"
    )]
    NoGreatestRate { share: String, why: String },
    #[error("cannot handle signals: {0}")]
    Signals(#[source] io::Error),
    #[error(
        "{0}: the log of histograms cannot be written: {1}; name another file, or free disk space"
    )]
    HdrLog(PathBuf, #[source] io::Error),
    #[error(
        "{0}: the log of requests cannot be written: {1}; name another file, or free disk space"
    )]
    RequestLog(PathBuf, #[source] io::Error),
    #[error("standard output: {0}; write to another place, or free disk space")]
    Output(#[source] io::Error),
    #[error(
        "{share} of what was due was not answered, more than --unanswered-max {limit}; a lower --rate, or look at the server"
    )]
    Unanswered { share: String, limit: String },
    #[error(
        "all {answers} transactions of the measured phase ended with an error ({errors}): there is no rate; mend the --command, or look at the server"
    )]
    OnlyErrors { answers: String, errors: String },
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Together(#[from] TogetherError),
    #[error(transparent)]
    Report(#[from] ReporterError),
}

impl Error {
    /// Whether the reader of the output has gone, and so wants to know nothing more.
    pub fn is_of_reader(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Whether the run was stopped before what it was at was done.
    pub fn is_stop(&self) -> bool {
        matches!(
            self,
            Self::Stopped
                | Self::StoppedBeforeRate
                | Self::Together(TogetherError::Stopped)
                | Self::Admin(AdminError::Stopped)
                | Self::Dataset(
                    DatasetError::Admin(AdminError::Stopped)
                        | DatasetError::Verify(VerifyError::Admin(AdminError::Stopped))
                )
        )
    }

    /// 2 for options and data that do not fit together, 4 if too much was not answered, 130 or 143
    /// if the run was stopped by this signal, 141 as by SIGPIPE if the reader of the output has gone, else 1.
    pub fn exit_code(&self, signal: Option<i32>) -> u8 {
        match self {
            Self::Usage(_) | Self::Workload(_) => 2,
            Self::Dataset(DatasetError::Refused(..)) => 2,
            Self::Unanswered { .. } => 4,
            Self::Output(_) if self.is_of_reader() => 141,
            _ if self.is_stop() => 128 + signal.unwrap_or(Signal::SIGINT as i32) as u8,
            _ => 1,
        }
    }
}
