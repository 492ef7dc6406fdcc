//! What can go wrong, in the user's words.

use std::io;

use concurve_wire::reporter::ReporterError;

use crate::keys::KeysError;
use crate::protocol::ProtocolError;
use crate::script::ScriptError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Keys(#[from] KeysError),
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error("{0}")]
    Asked(String),
    #[error("cannot connect session {session} to {server}: {source}; is the server up?{hint}")]
    Connect {
        session: u64,
        server: String,
        source: io::Error,
        hint: String,
    },
    #[error("session {session} lost its connection to {server}: {source}")]
    Lost {
        session: u64,
        server: String,
        source: io::Error,
    },
    #[error("session {session} at {server}: {source}")]
    Protocol {
        session: u64,
        server: String,
        source: ProtocolError,
    },
    #[error("cannot wait for the connections: {0}")]
    Poll(#[source] io::Error),
    #[error("cannot start client thread {0}: {1}")]
    Thread(u64, #[source] io::Error),
    #[error("cannot start client process {0}: {1}")]
    Process(u64, #[source] io::Error),
    #[error("client process {0} failed; its message stands above")]
    Part(u64),
    #[error(transparent)]
    Report(#[from] ReporterError),
}

impl Error {
    /// 2 for what was asked wrongly, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Keys(_) | Self::Script(_) | Self::Asked(_) => 2,
            _ => 1,
        }
    }
}
