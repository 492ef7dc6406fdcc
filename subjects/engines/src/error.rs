//! Why a service cannot be run.

use std::io;

use thiserror::Error;

/// Why a service ended otherwise than on request.
#[derive(Debug, Error)]
pub enum EnginesError {
    /// The service's own message.
    #[error("{0}")]
    Service(String),
    #[error("engine {0} panicked; standard error says where")]
    Panicked(u32),
    #[error("the engines died {count} times in a row soon after their start; the last time: {why}")]
    KeepsDying { count: u32, why: String },
    #[error(
        "the engines died while they were stopped: {0}; the next start finds what they had committed"
    )]
    DiedStopping(String),
    #[error("the engines did not stop within {0} s and were killed")]
    Stuck(u64),
    #[error("engines cannot be processes: {0}")]
    Unfit(String),
    #[error("cannot {what}: {source}")]
    System { what: String, source: io::Error },
}

impl EnginesError {
    /// For `map_err`: the system refused to do `what`.
    pub(crate) fn system<E: Into<io::Error>>(what: &str) -> impl FnOnce(E) -> Self {
        |source| Self::System {
            what: what.to_owned(),
            source: source.into(),
        }
    }
}
