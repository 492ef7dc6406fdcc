//! One statement at a time, each answered before the next: what comes before a load and after it.

use std::fmt::Debug;
use std::sync::Arc;

use crate::connecting::{Failure, Patience, connect, converse};
use crate::connection::Connection;
use crate::error::Error;
use crate::plan::Server;
use crate::protocol::{Conversation, Message, Protocol};
use crate::stop::Stop;
use crate::workload::Answer;

/// Where statements are answered.
pub trait Desk {
    /// The number that the answer brought, if it brought one.
    ///
    /// # Errors
    /// The server refuses, in its own words, or is gone.
    fn ask(&mut self, statement: &str) -> Result<Option<i64>, DeskError>;
}

/// A way to a desk.
pub trait Desks: Debug + Send + Sync {
    /// Opens a desk; `create` makes the file of an engine if it is not there yet.
    ///
    /// # Errors
    /// The server or the engine cannot be reached.
    fn open(&self, create: bool, stop: &Stop) -> Result<Box<dyn Desk>, Error>;
}

/// Why a statement was not answered.
#[derive(Debug, thiserror::Error)]
pub enum DeskError {
    #[error("{0:?}: {1}")]
    Refused(String, String),
    #[error("{0:?}: the connection is lost: {1}")]
    Lost(String, String),
    #[error("stopped before it was done")]
    Stopped,
}

impl DeskError {
    pub fn refused(statement: &str, why: String) -> Self {
        Self::Refused(shortened(statement), why)
    }
}

fn shortened(statement: &str) -> String {
    const CHARACTERS: usize = 80;
    match statement.char_indices().nth(CHARACTERS) {
        None => statement.to_owned(),
        Some((end, _)) => format!("{}…", &statement[..end]),
    }
}

/// The desk of a server: a connection of its own, with nothing prepared.
#[derive(Debug)]
pub struct ServerDesks {
    pub server: Server,
    pub protocol: Arc<dyn Protocol>,
    /// For connecting.
    pub patience_ns: u64,
}

struct ServerDesk {
    connection: Connection,
    conversation: Box<dyn Conversation>,
    stop: Stop,
}

impl Desks for ServerDesks {
    fn open(&self, _create: bool, stop: &Stop) -> Result<Box<dyn Desk>, Error> {
        let patience = Patience::of_ns(self.patience_ns, stop);
        match connect(&self.server, &*self.protocol, patience) {
            Ok((connection, conversation)) => Ok(Box::new(ServerDesk {
                connection,
                conversation,
                stop: stop.clone(),
            })),
            Err(_) if stop.is_set() => Err(Error::Stopped),
            Err(failure) => Err(Error::desk(&self.server, failure)),
        }
    }
}

impl Desk for ServerDesk {
    fn ask(&mut self, statement: &str) -> Result<Option<i64>, DeskError> {
        let lost =
            |why: &dyn std::fmt::Display| DeskError::Lost(shortened(statement), why.to_string());
        let mut out = Vec::new();
        self.conversation.ask_once(statement, &mut out);
        let patience = Patience::without_end(&self.stop);
        match converse(
            &mut self.connection,
            &mut *self.conversation,
            &mut out,
            patience,
        ) {
            Ok(Message::Answer(Answer::Done(number))) => Ok(number),
            Ok(Message::Answer(Answer::Error(why))) => Err(DeskError::refused(statement, why)),
            Ok(_) => Ok(None),
            Err(_) if self.stop.is_set() => Err(DeskError::Stopped),
            Err(Failure::Io(why)) => Err(lost(&why)),
            Err(Failure::Protocol(why)) => Err(lost(&why)),
        }
    }
}
