//! Administrative connections: they create and verify data, and mark the measured phase at a
//! server. Each statement is sent after the reply to the previous one.

use std::fmt::Debug;

use crate::stop::Stop;

/// A connection that executes one statement at a time.
pub trait AdminConnection {
    /// Executes a statement; returns the number in the answer, if it contains one.
    ///
    /// # Errors
    /// The server refuses, in its own words, or the connection is lost.
    fn execute(&mut self, statement: &str) -> Result<Option<i64>, AdminError>;
}

/// Executes a statement, unless the run is stopped: an engine in this process does not look for that.
pub fn execute_unless_stopped(
    connection: &mut dyn AdminConnection,
    statement: &str,
    stop: &Stop,
) -> Result<Option<i64>, AdminError> {
    match stop.is_set() {
        true => Err(AdminError::Stopped),
        false => connection.execute(statement),
    }
}

/// Opens administrative connections to one server or engine.
pub trait AdminAccess: Debug + Send + Sync {
    /// Opens a connection; `create` makes the files of an engine if they are missing.
    ///
    /// # Errors
    /// The server or the engine cannot be reached.
    fn open(&self, create: bool, stop: &Stop) -> Result<Box<dyn AdminConnection>, AdminError>;
}

/// Why there is no connection, or no answer to a statement.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error("{server}: {why}")]
    Connect { server: String, why: String },
    /// The statement, and the server's words.
    #[error("{0:?}: {1}")]
    Refused(String, String),
    #[error("{0:?}: the connection is lost: {1}")]
    Lost(String, String),
    /// The statement, and for how long it was waited. A later answer would be taken for that of another
    /// statement, so the connection is of no use any more.
    #[error("{0:?}: {1}")]
    NoAnswer(String, String),
    #[error("stopped before it was done")]
    Stopped,
}

impl AdminError {
    pub fn refused(statement: &str, why: String) -> Self {
        Self::Refused(shortened(statement), why)
    }

    pub fn no_answer(statement: &str, why: &impl ToString) -> Self {
        Self::NoAnswer(shortened(statement), why.to_string())
    }

    pub fn lost(statement: &str, why: &impl ToString) -> Self {
        Self::Lost(shortened(statement), why.to_string())
    }
}

fn shortened(statement: &str) -> String {
    const CHARACTERS: usize = 80;
    match statement.char_indices().nth(CHARACTERS) {
        None => statement.to_owned(),
        Some((end, _)) => format!("{}…", &statement[..end]),
    }
}
