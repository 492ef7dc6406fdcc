//! The one error type of the program.

use std::io;
use std::path::{Path, PathBuf};

use concurve_reporter::ReporterError;
use thiserror::Error;

/// Why something was not done.
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
    /// The export set is not what it should be; nothing to do with the database.
    #[error("{}: {what}: make the export set anew", path.display())]
    Export { path: PathBuf, what: String },
    #[error("{what}: {}", with_causes(source.as_ref()))]
    Database {
        what: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What a loader that is a process has told, with all that it has to say.
    #[error("{0}")]
    InLoader(String),
    #[error(
        "loader {loader} {how} while it loaded {place}: its last words are above, if it had any; \
         the kernel's log says whether memory ran out"
    )]
    Lost {
        loader: usize,
        how: String,
        place: String,
    },
    /// What was loaded is not what was exported.
    #[error("table {table} is wrong in the database: {what}")]
    Wrong { table: String, what: String },
    #[error(transparent)]
    Report(#[from] ReporterError),
}

impl Error {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            _ => 1,
        }
    }
}

/// An error and what it was caused by, unless it says so itself: PostgreSQL's words are a cause of
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

/// Gives errors of files their place.
pub trait At<T> {
    fn at(self, what: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, what: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::Io {
            what,
            path: path.to_owned(),
            source,
        })
    }
}

/// Gives errors of databases their place.
pub trait While<T> {
    fn when(self, what: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T, E: std::error::Error + Send + Sync + 'static> While<T> for Result<T, E> {
    fn when(self, what: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::Database {
            what: what(),
            source: Box::new(source),
        })
    }
}
