//! The times of single requests, for a log of all of them.

use serde::{Deserialize, Serialize};

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Ok,
    Refused,
    Error,
    /// Its connection was lost before it was answered.
    Lost,
    /// Sent, and not answered by the end.
    Unanswered,
    /// It still waited for a free session at the end.
    Waiting,
    /// Too many were waiting when it became due.
    Skipped,
}

impl Outcome {
    /// As the log has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::Error => "error",
            Self::Lost => "lost",
            Self::Unanswered => "unanswered",
            Self::Waiting => "waiting",
            Self::Skipped => "skipped",
        }
    }
}

/// A request that was due in the measured time; times on CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestTimes {
    pub session: Option<u64>,
    /// Index of its kind.
    pub kind: usize,
    pub due_ns: u64,
    pub sent_ns: Option<u64>,
    pub answered_ns: Option<u64>,
    pub outcome: Outcome,
}
