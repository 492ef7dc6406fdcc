//! The statement service: prepared statements over files of records, with the caches that a database
//! server's kernel has for them.
//!
//! [`Catalogue`] says which files there are and what their fields are called, [`RecordFiles`] does what
//! a plan says to them, a [`Client`] is what a connection has prepared. The language, its plans and the
//! caches are `concurve-statements`; the records, their locks and transactions are `concurve-records`.

mod audit;
mod catalogue;
mod client;
mod files;
mod layout;
mod settings;

use concurve_latch::Class;
use concurve_records::{Engine, Fault, Status};
use concurve_statements::{StatementError, Statements};
use thiserror::Error;

pub use audit::{Sums, differing};
pub use catalogue::{Catalogue, View};
pub use client::{Client, PREPARED_MAX};
pub use files::RecordFiles;
pub use settings::{Caching, Options, StatementSettings};

/// What all sessions share.
#[derive(Debug)]
pub struct StatementService {
    pub statements: Statements,
    pub catalogue: Catalogue,
    /// A plan is in use: it and its pages are lost if the engine dies.
    executing: Class,
}

impl StatementService {
    /// Reads which files there are.
    ///
    /// # Errors
    /// If the records cannot be read.
    pub fn open(
        settings: &StatementSettings,
        engines: usize,
        records: &Engine,
    ) -> Result<Self, Fault> {
        Ok(Self {
            statements: Statements::new(&settings.of_engines(engines)),
            catalogue: Catalogue::open(records)?,
            executing: Class::named("statement in execution"),
        })
    }
}

/// Why something was not done.
#[derive(Debug, Error)]
pub enum Refusal {
    #[error(transparent)]
    Statement(#[from] StatementError),
    #[error(transparent)]
    Status(#[from] Status),
    #[error("the sum of {0} and {1} has no place in 64 bits")]
    Overflow(i64, i64),
    /// A name, a field or a number that cannot be.
    #[error("{0}")]
    Usage(String),
    #[error("there is no statement named {0}: PREPARE it first")]
    NoStatement(String),
    /// An earlier statement of the transaction was refused.
    #[error("a statement of the transaction was refused, so none of it can be done: ABORT it")]
    Failed,
}

impl Refusal {
    /// A word for programs.
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
