//! Counts by kind of transaction.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::histogram::{encoded, histogram};

/// Counts of one kind of transaction.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KindTally {
    /// From the moment it was due, in ns; answered ones only, refused ones included.
    #[serde(with = "encoded")]
    pub latency_ns: Histogram<u64>,
    pub ok: u64,
    pub refused: u64,
    /// By kind: answered with an error, or never answered because the connection was lost.
    pub errors: BTreeMap<String, u64>,
}

/// The counts of one interval of the measured time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Interval {
    /// Of the intervals since measuring began.
    pub number: u64,
    pub kinds: Vec<KindTally>,
}

impl Interval {
    pub fn add(&mut self, other: &Self) {
        add_kinds(&mut self.kinds, &other.kinds);
    }
}

/// Adds counts of the same kinds.
pub fn add_kinds(own: &mut [KindTally], other: &[KindTally]) {
    for (own, other) in own.iter_mut().zip(other) {
        own.add(other);
    }
}

impl Default for KindTally {
    fn default() -> Self {
        Self {
            latency_ns: histogram(),
            ok: 0,
            refused: 0,
            errors: BTreeMap::new(),
        }
    }
}

impl KindTally {
    /// Transactions that were answered, whatever the answer was.
    pub fn answered(&self) -> u64 {
        self.latency_ns.len()
    }

    /// Answered, or lost with their connection.
    pub fn ended(&self) -> u64 {
        self.ok + self.refused + self.failed()
    }

    /// Those that ended with an error.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    pub fn add(&mut self, other: &Self) {
        self.latency_ns += &other.latency_ns;
        self.ok += other.ok;
        self.refused += other.refused;
        add_counts(&mut self.errors, &other.errors);
    }
}

/// Adds counts by kind to others.
pub fn add_counts(own: &mut BTreeMap<String, u64>, other: &BTreeMap<String, u64>) {
    for (kind, count) in other {
        *own.entry(kind.clone()).or_default() += count;
    }
}
