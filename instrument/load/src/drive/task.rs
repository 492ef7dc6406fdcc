//! What the main thread tells the workers, and what they answer.

use serde::{Deserialize, Serialize};

use super::open_loop::Pace;
use crate::error::Error;
use crate::figures::tally::{Interval, Tally};

/// A stretch of load, given to all workers together. Times are those of CLOCK_MONOTONIC.
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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Each session has its share of so many transactions.
    Transactions(u64),
    After {
        ns: u64,
    },
}

/// A message of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub enum WorkerMessage {
    /// Its sessions are connected.
    Ready,
    /// Its counts of one interval; not reported again at the end.
    Interval(Interval),
    /// The task is done.
    Ended(Box<Tally>),
    #[serde(skip)]
    Failed(Error),
}

impl Task {
    /// When measuring begins.
    pub fn measure_ns(&self) -> u64 {
        self.begin_ns + self.ramp_ns + self.warm_up_ns
    }

    /// When it ends; never, if it ends by a number.
    pub fn end_ns(&self) -> u64 {
        match self.end {
            End::Transactions(_) => u64::MAX,
            End::After { ns } => self.measure_ns() + ns,
        }
    }

    pub fn ends_by_number(&self) -> bool {
        matches!(self.end, End::Transactions(_))
    }
}
