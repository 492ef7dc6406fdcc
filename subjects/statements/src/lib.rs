//! Prepared statements over files of records: the caches of a database server's kernel.
//!
//! A *statement* is a text such as `ADD accounts balance ? KEY ?`: one of a few operations, compiled
//! to a [`Plan`]. A [`Statements`] finds the plan of a text in its *statement cache*, by the text and
//! the options of the session, or compiles it. A plan takes pages of the *procedure cache*, of which
//! each engine has some of its own, and all share the rest behind one latch. When there are too few,
//! plans that nobody uses are dropped.
//!
//! What is shared is latched with `concurve-latch` and hashed with keys of its own, so engines may be
//! threads or processes. Source of the architecture: Sybase ASE's statement and procedure caches
//! (document 001).

mod cache;
mod plan;
mod procedures;
mod service;
mod text;

use thiserror::Error;

pub use cache::Caching;
pub use plan::{Answer, FileId, Files, Operand, Operation, Plan, Value};
pub use procedures::PAGE_BYTES;
pub use service::{Counters, SessionOptions, Settings, Statements};
pub use text::{Catalogue, FileColumns};

/// Why a statement has no plan, or its plan could not be executed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StatementError {
    #[error("'{text}': {why}")]
    Text { text: String, why: String },
    #[error("there is no file named {0}: create it first")]
    NoFile(String),
    #[error("file {file} has no field named {field}: it has {known}")]
    NoField {
        file: String,
        field: String,
        known: String,
    },
    #[error("the statement has {wanted} parameters and was given {given}")]
    Parameters { wanted: usize, given: usize },
    /// Its number is ASE's.
    #[error(
        "701: the procedure cache is exhausted: all plans in its {pages} pages are in use, and {wanted} \
         pages are needed; give it more with --procedure-cache"
    )]
    Exhausted { pages: usize, wanted: usize },
}
