//! What is known of a thread before its end is booked.

use concurve_probe::schedstat::Schedstat;
use concurve_wire::spec::Policy;

use crate::waits::Sights;

/// What is known of a thread that has not ended yet.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    pub pid: u32,
    pub name: String,
    pub nice: Option<i32>,
    pub policy: Option<Policy>,
    pub cpus: Option<Vec<u32>>,
    pub schedstat: Schedstat,
    /// Voluntary and involuntary.
    pub switches: Option<(u64, u64)>,
    pub waits: Sights,
}

/// What a zombie's files say; exact.
#[derive(Debug, Clone)]
pub struct Final {
    pub name: String,
    pub nice: i32,
    pub policy: Option<Policy>,
    pub schedstat: Schedstat,
    pub switches: Option<(u64, u64)>,
    pub migrations: Option<u64>,
}
