//! What can go wrong, in the user's words.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use concurve_reporter::ReporterError;

use crate::connecting::Failure;
use crate::data::DataError;
use crate::desk::DeskError;
use crate::embedded::EngineError;
use crate::figures::by_kind;
use crate::plan::{Plan, Server};
use crate::protocol::ProtocolError;
use crate::workload::keys::KeysError;
use crate::workload::script::ScriptError;
use crate::workload::tpcb::TpcbError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Keys(#[from] KeysError),
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error(transparent)]
    Tpcb(#[from] TpcbError),
    #[error("{0}")]
    Asked(String),
    #[error("cannot connect session {session} to {server}: {source}; {remedy}")]
    Connect {
        session: u64,
        server: String,
        source: io::Error,
        remedy: &'static str,
    },
    #[error(
        "no session is left: all {sessions} lost their connection to {server} ({why}); these are the figures until then; what does the server's log say, and is it the right port?"
    )]
    AllLost {
        sessions: u64,
        server: String,
        why: String,
    },
    #[error("session {session} at {server}: {source}")]
    Protocol {
        session: u64,
        server: String,
        source: ProtocolError,
    },
    #[error("{server}: {why}")]
    Desk { server: String, why: String },
    #[error(transparent)]
    Data(#[from] DataError),
    #[error("cannot wait for the connections: {0}")]
    Poll(#[source] io::Error),
    #[error("cannot start client thread {0}: {1}")]
    Thread(u64, #[source] io::Error),
    #[error("cannot start client process {0}: {1}")]
    Process(u64, #[source] io::Error),
    #[error("client process {0} failed; its message stands above")]
    Part(u64),
    #[error("a client thread ended before its time; its message stands above")]
    Gone,
    #[error("stopped before the sessions were connected")]
    Stopped,
    #[error("cannot get ready for signals: {0}")]
    Signals(#[source] io::Error),
    #[error("{0}: the log of histograms cannot be written: {1}; another place or more space")]
    HdrLog(PathBuf, #[source] io::Error),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Report(#[from] ReporterError),
}

impl Error {
    pub fn connect(plan: &Plan, session: u64, source: io::Error) -> Self {
        Self::Connect {
            session,
            server: plan.place(),
            remedy: remedy(&source),
            source,
        }
    }

    /// An error if no session is left.
    pub fn if_all_lost(plan: &Plan, lost: &BTreeMap<String, u64>) -> Result<(), Self> {
        if lost.values().sum::<u64>() < plan.sessions {
            return Ok(());
        }
        Err(Self::AllLost {
            sessions: plan.sessions,
            server: plan.place(),
            why: by_kind(lost),
        })
    }

    pub fn protocol(plan: &Plan, session: u64, source: ProtocolError) -> Self {
        Self::Protocol {
            session,
            server: plan.place(),
            source,
        }
    }

    /// The connection for what comes before a load or after it cannot be made.
    pub fn desk(server: &Server, failure: Failure) -> Self {
        Self::Desk {
            server: server.text(),
            why: match failure {
                Failure::Protocol(source) => source.to_string(),
                Failure::Io(source) => {
                    let remedy = remedy(&source);
                    format!("cannot connect: {source}; {remedy}")
                }
            },
        }
    }

    /// 2 for what was asked wrongly, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Keys(_) | Self::Script(_) | Self::Tpcb(_) | Self::Asked(_) => 2,
            Self::Data(DataError::Refused(_)) => 2,
            Self::Stopped | Self::Data(DataError::Desk(DeskError::Stopped)) => 130,
            _ => 1,
        }
    }
}

/// What to try when a connection cannot be made.
fn remedy(error: &io::Error) -> &'static str {
    use nix::errno::Errno;
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EMFILE | Errno::ENFILE) => {
            "raise the limit of open files (ulimit -n), or take fewer --sessions"
        }
        Some(Errno::EADDRNOTAVAIL) => {
            "this host has no port left for so many connections: fewer --sessions, or wait until \
             the old ones are forgotten"
        }
        Some(Errno::EACCES) => "may you use this socket?",
        _ if error.kind() == io::ErrorKind::TimedOut => {
            "is it the right port, and the right protocol in the address? --connect-timeout waits \
             longer"
        }
        _ if error.kind() == io::ErrorKind::UnexpectedEof => {
            "does it take so many clients, and is it the right port?"
        }
        _ => "is the server up?",
    }
}
