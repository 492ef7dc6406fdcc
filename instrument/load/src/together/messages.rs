//! What loads that search together say to each other: a line of JSON each.

use serde::{Deserialize, Serialize};

use crate::counts::tally::Tally;
use crate::plan::Task;

/// Of the leader, in this order; those from `Clock` on as often as it needs them.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromLeader {
    /// The first word: a number that was never used before.
    Challenge {
        version: String,
        nonce: String,
    },
    /// The leader knows the token, too.
    Welcome {
        proof: String,
    },
    Refused {
        why: String,
    },
    /// Connect the sessions, as the load with this number, from 1 on.
    Connect {
        number: u64,
    },
    /// What does your clock say?
    Clock,
    Begin(Task),
    /// The search is over; what it counted of this load.
    End(Part),
}

/// Of a follower: an answer to each of those.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromFollower {
    Join {
        version: String,
        /// The name of its role in a trial.
        role: Option<String>,
        sessions: u64,
        /// The names of the kinds of its transactions.
        kinds: Vec<String>,
        nonce: String,
        proof: String,
    },
    Connected,
    /// Its CLOCK_MONOTONIC.
    Clock {
        now_ns: u64,
    },
    Ended(Box<TaskCounts>),
    /// Who had the CPUs of its machine, if they were busy.
    Left {
        machine_busy: Option<String>,
    },
    /// It ends for this reason.
    Failed {
        why: String,
    },
}

/// The counts of a load in one task, by its own clock.
#[derive(Debug, Serialize, Deserialize)]
pub struct TaskCounts {
    pub tally: Tally,
    /// Share of a CPU that its busiest client thread used.
    pub busiest_share: f64,
    /// How long after the begin of the task it heard of it; 0 if that was before.
    pub late_ns: u64,
}

/// A load's part in the windows of a search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    pub requests: u64,
    /// Bad requests by objective.
    pub bad: Vec<u64>,
}

impl Part {
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.bad.resize(other.bad.len().max(self.bad.len()), 0);
        let pairs = self.bad.iter_mut().zip(&other.bad);
        pairs.for_each(|(own, other)| *own += other);
    }

    /// The largest share of bad requests by any objective; `None` without requests.
    pub fn bad_share(&self) -> Option<f64> {
        let worst = self.bad.iter().copied().max().unwrap_or(0);
        (self.requests > 0).then(|| worst as f64 / self.requests as f64)
    }
}
