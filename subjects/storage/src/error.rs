//! The error type of the program.

use std::io;
use std::path::{Path, PathBuf};

use concurve_reporter::ReporterError;
use thiserror::Error;

/// Why an export, a load or streams failed.
#[derive(Debug, Error)]
pub enum Error {
    #[error("{0}")]
    Usage(String),
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error(
        "{what} takes {} MB at least, and {} has {} MB left: take a smaller --size, or another \
         folder",
        bytes.div_ceil(1_000_000),
        path.display(),
        free / 1_000_000
    )]
    Space {
        what: &'static str,
        path: PathBuf,
        bytes: u64,
        free: u64,
    },
    /// The export set is damaged.
    #[error("{}: {what}: make the export set anew", path.display())]
    Export { path: PathBuf, what: String },
    #[error("{what}: {}", with_causes(source.as_ref()))]
    Database {
        what: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The message of a loader process.
    #[error("{0}")]
    InLoader(String),
    #[error(
        "loader {loader} {how} while it loaded {place}: see its message above, if it wrote any; \
        the kernel's log shows whether the machine was out of memory"
    )]
    Lost {
        loader: usize,
        how: String,
        place: String,
    },
    /// A loaded table differs from the export.
    #[error("table {table} is wrong in the database: {what}")]
    Wrong { table: String, what: String },
    #[error(transparent)]
    Report(#[from] ReporterError),
}

impl Error {
    /// For `map_err`: the system refused to do `what` with the file or folder.
    pub fn io<E: Into<io::Error>>(what: &'static str, path: &Path) -> impl FnOnce(E) -> Self {
        move |source| Self::Io {
            what,
            path: path.to_owned(),
            source: source.into(),
        }
    }

    /// For `map_err`: the database failed; `what` says in what.
    pub fn database<E>(what: impl FnOnce() -> String) -> impl FnOnce(E) -> Self
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        |source| Self::Database {
            what: what(),
            source: Box::new(source),
        }
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            _ => 1,
        }
    }
}

/// An error and its causes, unless its text contains them: PostgreSQL's message is a cause of
/// "db error".
fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}
