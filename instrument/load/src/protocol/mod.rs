//! What is spoken on a connection, without doing any input or output: one module a protocol.

use std::fmt::Debug;
use std::ops::Range;

use crate::workload::{Answer, Numbers};

pub mod mysql;
pub mod postgres;
pub mod resp;

/// A protocol with everything that the connections of a run share, such as prepared statements.
pub trait Protocol: Debug + Send + Sync {
    /// A new connection's conversation.
    fn conversation(&self) -> Box<dyn Conversation>;
}

/// One connection's conversation. Bytes to send are appended to `out`; the caller sends them.
/// Several trips may be under way at once (pipelining).
pub trait Conversation: Send {
    /// Begins by logging in, preparing statements …; `true` if [`Conversation::receive`] must first
    /// say that this is done.
    fn greet(&mut self, out: &mut Vec<u8>) -> bool;

    /// Asks for some of the workload's statements together, with the numbers of a transaction:
    /// a round trip, which gets one answer.
    fn ask(&mut self, statements: Range<usize>, numbers: &Numbers, out: &mut Vec<u8>);

    /// Asks for one statement that is not the workload's: what comes before a load and after it. It
    /// is answered like a trip, but an error in the server's own words.
    fn ask_once(&mut self, statement: &str, out: &mut Vec<u8>);

    /// Reads what came in, from the front of `input`. Trips are answered in the order in which
    /// they were asked.
    ///
    /// # Errors
    /// The server does not speak the protocol, or refuses the log-in.
    fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Received, ProtocolError>;
}

/// What a part of the input meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Bytes that were used.
    pub consumed: usize,
    pub message: Message,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// The message is not whole yet.
    Partial,
    /// Nothing that anybody waits for, or not all of it.
    Aside,
    /// The greeting is done.
    Greeted,
    /// The answer to a trip.
    Answer(Answer),
}

/// The conversation cannot go on.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ProtocolError {
    #[error("the server sent {0:?}, which is not {1}: is this the right port?")]
    Garbage(String, &'static str),
    #[error("the server refused the log-in: {0}; {1}")]
    Login(String, &'static str),
    #[error("the server refused {0:?}: {1}")]
    Statement(String, String),
    #[error("the server sent an answer to nothing: {0:?}")]
    Unasked(String),
}
