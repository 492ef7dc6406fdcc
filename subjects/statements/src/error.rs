//! Errors of statements.

use thiserror::Error;

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
    /// With the number of the message of ASE.
    #[error(
        "701: the procedure cache is exhausted: all plans in its {pages} pages are in use, and {wanted} \
         pages are needed; give it more with --procedure-cache"
    )]
    Exhausted { pages: usize, wanted: usize },
}
