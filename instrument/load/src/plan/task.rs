//! A task: a period of load for all workers.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A period of load, given to all workers together. Times are those of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub begin_ns: u64,
    /// Sessions begin one after the other over this time.
    pub ramp_ns: u64,
    /// The same load before it is measured.
    pub warm_up_ns: u64,
    pub pace: Pace,
    pub end: End,
    /// Workers report their counts after each such interval, and not only at the end.
    pub interval_ns: Option<u64>,
    /// Whose sessions the load is for; `None`: those of this process alone.
    pub among: Option<Among>,
}

/// Rates of an open loop, in transactions a second: a due time is a number of nanoseconds, and no
/// thread counts more of them than it has time for.
pub const RATE_MIN: f64 = 1e-6;
pub const RATE_MAX: f64 = 1e7;

/// The place of the sessions of a process among those of all processes that put on one load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Among {
    /// The number of its first session.
    pub first: u64,
    /// Number of all sessions.
    pub all: u64,
}

/// Some of the sessions of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub sessions: Range<u64>,
    /// Number of all sessions.
    pub all: u64,
}

impl Part {
    /// Of all sessions.
    pub fn share(&self) -> f64 {
        (self.sessions.end - self.sessions.start) as f64 / self.all as f64
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Each session has its share of so many transactions. What is not done within a time, if there is one,
    /// is not done.
    Transactions {
        number: u64,
        within_ns: Option<u64>,
    },
    After {
        ns: u64,
    },
}

/// When a session begins its next transaction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// Closed loop: after the reply to the last one and a think time.
    Closed { think_ns: u64 },
    /// Open loop: by a schedule that is independent of the replies.
    Open {
        rate_per_second: f64,
        spread: Spread,
        /// Due transactions that may wait for a free session, over all threads.
        backlog_max: usize,
    },
}

impl Pace {
    /// The rate of an open loop.
    pub fn due_per_second(self) -> Option<f64> {
        match self {
            Self::Open {
                rate_per_second, ..
            } => Some(rate_per_second),
            Self::Closed { .. } => None,
        }
    }
}

/// The distribution of the times between arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// All the same.
    Constant,
    /// Exponential: independent users.
    Poisson,
}

impl Task {
    /// No transactions: what a worker has before its first task.
    pub const NONE: Self = Self {
        begin_ns: 0,
        ramp_ns: 0,
        warm_up_ns: 0,
        pace: Pace::Closed { think_ns: 0 },
        end: End::Transactions {
            number: 0,
            within_ns: None,
        },
        interval_ns: None,
        among: None,
    };

    /// Some of the `own` sessions of a process, among all that the load is for.
    pub fn part(&self, some: Range<u64>, own: u64) -> Part {
        let Among { first, all } = self.among.unwrap_or(Among { first: 0, all: own });
        Part {
            sessions: first + some.start..first + some.end,
            all,
        }
    }

    /// When measuring begins.
    pub fn measure_ns(&self) -> u64 {
        self.begin_ns + self.ramp_ns + self.warm_up_ns
    }

    /// When it ends at the latest; never, if it ends by a number alone.
    pub fn end_ns(&self) -> u64 {
        match self.end {
            End::Transactions {
                within_ns: None, ..
            } => u64::MAX,
            End::Transactions {
                within_ns: Some(ns),
                ..
            }
            | End::After { ns } => self.measure_ns() + ns,
        }
    }

    pub fn ends_by_number(&self) -> bool {
        matches!(self.end, End::Transactions { .. })
    }
}
