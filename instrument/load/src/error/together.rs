//! Why several loads cannot search together, as their users read it.

use std::io;

use super::Error;

/// Between a load that leads and those that follow it.
#[derive(Debug, thiserror::Error)]
pub enum TogetherError {
    #[error(
        "--listen {address}: cannot wait there for the loads that follow: {source}; an address of this machine, and a port that is free"
    )]
    Listen { address: String, source: io::Error },
    #[error(
        "--follow {address}: no load leads there: {source}; start it with --lead and --listen {address}; is it the right address, and does a firewall let it pass?"
    )]
    NoLeader { address: String, source: io::Error },
    #[error(
        "--lead {awaited}: {came} came to {address} within {limit}{refused}; start each with --follow {address}, or give them longer with --connect-timeout"
    )]
    TooFew {
        awaited: u64,
        came: u64,
        address: String,
        limit: String,
        /// Who else came, and why that was no load of this search.
        refused: String,
    },
    #[error("{with}: {why}")]
    Refused { with: String, why: Refusal },
    #[error("stopped, and so was the search of the load that leads")]
    Stopped,
    #[error(transparent)]
    Unmet(#[from] Refusal),
    #[error("{name} was lost: {why}; see its own message, and its host")]
    Lost { name: String, why: String },
    #[error("{name} failed: {why}")]
    Failed { name: String, why: String },
    #[error(
        "{name} got its task {late} after the load had begun, {times} times: the loads do not send together; hosts on one network that are less busy, or a longer --duration"
    )]
    Late {
        name: String,
        late: String,
        times: usize,
    },
    #[error(
        "{name}: a round trip takes {round_trip}, so its clock is known to half of that alone, and windows of {window} would not be at the same time; hosts on one network, or a longer --duration"
    )]
    Far {
        name: String,
        round_trip: String,
        window: String,
    },
    #[error("{name}: its clock jumped by {by}; a clock that runs evenly")]
    Jumped { name: String, by: String },
}

/// Why a process is none of those that search together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("no load that searches: {0}")]
    Stranger(String),
    #[error(
        "another token; the same secret in the variable that --token-from names, for all of them"
    )]
    Token,
    #[error("version {theirs}, and this one is {ours}; the same version for all of them")]
    Version { theirs: String, ours: String },
    #[error("other transactions ({theirs}; here {ours}); the same options for all of them")]
    Transactions { theirs: String, ours: String },
    #[error("the search has its {0} loads already")]
    Full(u64),
    /// What the leader said.
    #[error("refused: {0}")]
    Told(String),
}

impl From<Refusal> for Error {
    fn from(why: Refusal) -> Self {
        Self::Together(TogetherError::Unmet(why))
    }
}
