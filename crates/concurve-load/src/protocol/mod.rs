//! What is spoken on a connection, without doing any input or output: one module a protocol.

use rand::rngs::SmallRng;

pub mod resp;

/// One connection's conversation. Bytes to send are appended to `out`; the caller sends them.
/// Several transactions may be under way at once (pipelining).
pub trait Conversation: Send {
    /// Begins by logging in; `true` if [`Conversation::receive`] must first say that it is done.
    fn greet(&mut self, out: &mut Vec<u8>) -> bool;

    /// Begins a transaction.
    fn begin(&mut self, order: Order, random: &mut SmallRng, out: &mut Vec<u8>);

    /// Reads what came in, from the front of `input`.
    ///
    /// # Errors
    /// The server does not speak the protocol, or refuses the log-in.
    fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Received, ProtocolError>;
}

/// A transaction that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Index of its kind in the mix.
    pub kind: usize,
    /// When it was meant to begin: its latency counts from here.
    pub due_ns: u64,
}

/// What a part of the input meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Bytes that were used.
    pub consumed: usize,
    pub step: Step,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The message is not whole yet.
    NeedMore,
    /// The transaction goes on; what comes next has been appended to `out`.
    Continue,
    /// The log-in is done.
    Greeted,
    /// A transaction has ended.
    Done(Order, Ending),
}

/// How a transaction ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    Ok,
    /// The server answered, and the answer was no: a lock is taken, a row is not there.
    Refused,
    /// The server answered with an error of this kind.
    Error(String),
}

/// The conversation cannot go on.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ProtocolError {
    #[error("the server sent {0:?}, which is not {1}")]
    Garbage(String, &'static str),
    #[error("the server refused the log-in: {0}")]
    Login(String),
    #[error("the server sent an answer to nothing: {0:?}")]
    Unasked(String),
}
