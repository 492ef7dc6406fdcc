//! Why a statement was refused.

use concurve_records::{Status, command};
use concurve_statements::StatementError;
use thiserror::Error;

/// Why a statement was refused.
#[derive(Debug, Error)]
pub enum Refusal {
    #[error(transparent)]
    Statement(#[from] StatementError),
    #[error(transparent)]
    Status(#[from] Status),
    #[error("the sum of {0} and {1} does not fit into 64 bits")]
    Overflow(i64, i64),
    /// A name, a field or a number that is not allowed.
    #[error("{0}")]
    Usage(String),
    #[error("there is no statement named {0}: PREPARE it first")]
    NoStatement(String),
    /// An earlier statement of the transaction was refused.
    #[error("an earlier statement of the transaction was refused: send ABORT")]
    Failed,
}

impl From<command::Refusal> for Refusal {
    fn from(refusal: command::Refusal) -> Self {
        match refusal {
            command::Refusal::Status(status) => Refusal::Status(status),
            command::Refusal::Overflow(sum, more) => Refusal::Overflow(sum, more),
            command::Refusal::Usage(text) => Refusal::Usage(text),
        }
    }
}

impl Refusal {
    /// The code of the error reply, for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Refusal::Statement(error) => match error {
                StatementError::Text { .. } => "ERR",
                StatementError::NoFile(_) => Status::FileNotFound.word(),
                StatementError::NoField { .. } => "FIELDNOTFOUND",
                StatementError::Parameters { .. } => "PARAMETERS",
                StatementError::Exhausted { .. } => "EXHAUSTED",
            },
            Refusal::Status(status) => status.word(),
            Refusal::Overflow(..) => "OVERFLOW",
            Refusal::Usage(_) => "ERR",
            Refusal::NoStatement(_) => "NOSTATEMENT",
            Refusal::Failed => "FAILED",
        }
    }
}
