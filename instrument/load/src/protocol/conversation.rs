//! The interface of a protocol. It does no input or output: bytes in, bytes out.

use std::fmt::Debug;
use std::ops::Range;

use crate::workload::{Answer, Parameters};

/// A protocol, with all that the connections of a run share, such as prepared statements.
pub trait Protocol: Debug + Send + Sync {
    /// The conversation on a new connection.
    fn conversation(&self) -> Box<dyn Conversation>;
}

/// The conversation on one connection. Bytes to send are appended to `out`; the caller sends them.
/// Several requests may be under way at once (pipelining).
pub trait Conversation: Send {
    /// Begins: logs in, prepares statements …; `true` if requests must wait until
    /// [`Conversation::receive`] has returned [`Message::Ready`].
    fn begin(&mut self, out: &mut Vec<u8>) -> bool;

    /// Requests some of the workload's statements together, with the parameters of a transaction:
    /// one round trip, which gets one answer.
    fn request(&mut self, statements: Range<usize>, parameters: &Parameters, out: &mut Vec<u8>);

    /// Requests one statement that is not the workload's, for an administrative connection. It gets
    /// one answer, too, but an error in the server's own words.
    fn request_once(&mut self, statement: &str, out: &mut Vec<u8>);

    /// Reads a message from the front of `input`. Requests are answered in order.
    ///
    /// # Errors
    /// The server does not speak the protocol, or refuses the log-in.
    fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Received, ProtocolError>;

    /// The code of the error by which the server has said that it closes the connection, if it has.
    fn farewell(&self) -> Option<&str> {
        None
    }
}

/// A message that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Bytes of the input that it took.
    pub consumed: usize,
    pub message: Message,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// The message is not complete yet. What was taken of it is not passed again.
    Partial,
    /// Nothing that the caller waits for, or a part of it.
    Intermediate,
    /// The connection is ready for requests.
    Ready,
    /// The answer to the oldest request.
    Answer(Answer),
}

/// The longest text that is read in a reply, in bytes; servers may send longer ones.
pub const TEXT_BYTES_MAX: usize = 64 << 20;

/// Why a conversation cannot go on.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ProtocolError {
    #[error("the server sent {0:?}, which is not {1}: is this the right port?")]
    Garbage(String, &'static str),
    #[error(
        "the server sent a reply of more than {} MiB, and a load takes none; smaller values, or fewer of them in a reply",
        TEXT_BYTES_MAX >> 20
    )]
    TooLong,
    #[error("the server refused the log-in: {0}; {1}")]
    Login(String, &'static str),
    /// What it refused, its words, and a remedy.
    #[error("the server refused {0}: {1}; {2}")]
    Refused(String, String, &'static str),
    #[error("the server refused {0:?}: {1}")]
    Statement(String, String),
    #[error("the server sent a reply without a request: {0:?}")]
    Unasked(String),
}
