//! What a thread counts of its sessions, and how threads' counts become one.

mod kinds;
mod spent;
#[cfg(test)]
mod tests;

pub use kinds::{Interval, KindTally, add_counts};
pub use spent::Spent;

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::histogram::{encoded, histogram};
use crate::workload::Ending;
use kinds::add_kinds;

/// Counts of one session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTally {
    pub transactions: u64,
    pub latency_ns_sum: u64,
    pub latency_ns_max: u64,
    /// From the begin of measuring to its last answer.
    pub last_ns: u64,
}

/// Everything that one thread counted while it measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tally {
    /// By kind of transaction.
    pub kinds: Vec<KindTally>,
    /// By number of the session, from the thread's first.
    pub sessions: Vec<SessionTally>,
    pub spent: Spent,
    /// Open loop: became due.
    pub due: u64,
    /// Open loop: begun later than they were due, by more than the tolerance.
    pub late: u64,
    /// Open loop: due, and never begun, because too many waited before them.
    pub skipped: u64,
    /// Greatest delay between due and begun.
    pub lag_ns_max: u64,
    /// Ended well, those of the warm-up and after the end included: the server must have them.
    pub acknowledged: u64,
    /// Begun, and not answered at the end: the server may have them.
    pub in_doubt: u64,
    /// Sessions that lost their connection, by reason.
    pub lost: BTreeMap<String, u64>,
    /// Of a number asked for, those that lost sessions had not begun.
    pub not_begun: u64,
    #[serde(with = "encoded")]
    pub connection_ns: Histogram<u64>,
    pub begin_ns: u64,
    pub end_ns: u64,
}

impl Tally {
    pub fn new(kinds: usize, sessions: usize) -> Self {
        Self {
            kinds: vec![KindTally::default(); kinds],
            sessions: vec![SessionTally::default(); sessions],
            spent: Spent::default(),
            due: 0,
            late: 0,
            skipped: 0,
            lag_ns_max: 0,
            acknowledged: 0,
            in_doubt: 0,
            lost: BTreeMap::new(),
            not_begun: 0,
            connection_ns: histogram(),
            begin_ns: u64::MAX,
            end_ns: 0,
        }
    }

    /// Counts what the server has acknowledged, whenever that was.
    pub fn note_end(&mut self, ending: &Ending) {
        self.acknowledged += u64::from(*ending == Ending::Ok);
    }

    /// The counts so far, as those of an interval; they begin anew.
    pub fn take_interval(&mut self, number: u64) -> Interval {
        let new = vec![KindTally::default(); self.kinds.len()];
        let kinds = std::mem::replace(&mut self.kinds, new);
        Interval { number, kinds }
    }

    /// Puts back what was told as intervals.
    pub fn add_interval(&mut self, interval: &Interval) {
        add_kinds(&mut self.kinds, &interval.kinds);
    }

    /// Counts a transaction that ended while it was measured.
    pub fn end(&mut self, kind: usize, session: usize, latency_ns: u64, ending: Ending) {
        let tally = &mut self.kinds[kind];
        tally.latency_ns.saturating_record(latency_ns.max(1));
        match ending {
            Ending::Ok => tally.ok += 1,
            Ending::Refused => tally.refused += 1,
            Ending::Error(name) => *tally.errors.entry(name).or_default() += 1,
        }
        let session = &mut self.sessions[session];
        session.transactions += 1;
        session.latency_ns_sum += latency_ns;
        session.latency_ns_max = session.latency_ns_max.max(latency_ns);
    }

    /// Counts a transaction that was lost with its connection while it was measured.
    pub fn lose(&mut self, kind: usize, error: String) {
        *self.kinds[kind].errors.entry(error).or_default() += 1;
    }

    /// All threads together; their sessions one after the other.
    pub fn merged(tallies: Vec<Self>) -> Self {
        let kinds = tallies.first().map_or(0, |tally| tally.kinds.len());
        let mut all = Self::new(kinds, 0);
        for tally in tallies {
            add_kinds(&mut all.kinds, &tally.kinds);
            all.sessions.extend(tally.sessions);
            all.spent.add(&tally.spent);
            all.due += tally.due;
            all.late += tally.late;
            all.skipped += tally.skipped;
            all.lag_ns_max = all.lag_ns_max.max(tally.lag_ns_max);
            all.acknowledged += tally.acknowledged;
            all.in_doubt += tally.in_doubt;
            add_counts(&mut all.lost, &tally.lost);
            all.not_begun += tally.not_begun;
            all.connection_ns += &tally.connection_ns;
            all.begin_ns = all.begin_ns.min(tally.begin_ns);
            all.end_ns = all.end_ns.max(tally.end_ns);
        }
        all
    }

    /// All kinds in one.
    pub fn total(&self) -> KindTally {
        let mut total = KindTally::default();
        for kind in &self.kinds {
            total.add(kind);
        }
        total
    }

    /// From the first thread's begin to the last one's end.
    pub fn wall_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}
