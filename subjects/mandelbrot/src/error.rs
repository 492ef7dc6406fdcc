//! The errors of this crate, each with its place and its remedy.

use std::path::PathBuf;

/// The one error type of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "location file {}: cannot be read: {source}; name a readable file with --location, \
         or leave the option out for the built-in one",
        path.display()
    )]
    LocationUnreadable {
        path: PathBuf,
        source: std::io::Error,
    },

    #[error("location file {}: {fault}", path.display())]
    LocationMalformed {
        path: PathBuf,
        fault: crate::location::Fault,
    },

    #[error("picture {}: {reason}; name a writable file with --png", path.display())]
    Png { path: PathBuf, reason: String },

    #[error("live picture {}: {source}; name a writable file with --live", path.display())]
    Live {
        path: PathBuf,
        source: std::io::Error,
    },

    #[error(
        "threads: {created} of {requested} could be created, then: {source}; \
         the limit that bit: {limit}; ask for fewer with --threads, or raise that limit"
    )]
    Threads {
        requested: usize,
        created: usize,
        limit: String,
        source: std::io::Error,
    },

    #[error(transparent)]
    Report(#[from] concurve_reporter::ReporterError),

    #[error("standard output: {0}; send it to a file or terminal that takes it")]
    Stdout(std::io::Error),

    #[error(
        "internal: {computed} of {expected} pixels were computed; \
         please report this with the command line"
    )]
    PixelsLost { computed: u64, expected: u64 },
}
