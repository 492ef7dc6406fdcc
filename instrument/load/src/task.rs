//! One stretch of load, as it is given to all client threads together.

use serde::{Deserialize, Serialize};

use crate::plan::{End, Pace};

/// What the sessions are to do next. Times are those of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub begin_ns: u64,
    /// Sessions begin one after the other over this time.
    pub ramp_ns: u64,
    /// The same load before it is measured.
    pub warm_up_ns: u64,
    pub pace: Pace,
    pub end: End,
    /// Counts are told after each such interval, and not only at the end.
    pub interval_ns: Option<u64>,
}

impl Task {
    /// When measuring begins.
    pub fn measure_ns(&self) -> u64 {
        self.begin_ns + self.ramp_ns + self.warm_up_ns
    }

    /// When it ends; the end of time if it ends by a number.
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
