//! What can fail before the command runs.

use thiserror::Error;

/// Why nothing was done; the message says what to try.
#[derive(Debug, Error)]
pub enum Error {
    #[error("{0:?} is no place: write OFFSET@FILE, such as 0x12f4@/usr/bin/pigz")]
    Place(String),
    #[error("the places are in {0} and in {1}: name those of one file")]
    Files(String, String),
    #[error(
        "the library cannot be kept in memory: {0}; more memory, or fewer open files, may help"
    )]
    Library(nix::Error),
    #[error("{command}: {source}; is it installed, and in PATH?")]
    Start {
        command: String,
        source: std::io::Error,
    },
    #[error("no memory for a hog of {0} MiB: a smaller --megabytes may do")]
    Memory(usize),
}
