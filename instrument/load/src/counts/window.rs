//! What a search for a rate needs to know of a window: the counts of all kinds and sessions of a load
//! together.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::histogram::histogram;
use super::tally::{Ages, KindTally, Tally, add_counts};

/// The counts of one load in a window, or of several.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WindowCounts {
    /// The transactions that ended in it, of all kinds.
    pub ended: KindTally,
    /// Open loop: transactions that were due in it, and those of them that were not begun.
    pub due: u64,
    pub skipped: u64,
    /// The ages at its end of those that are lost, unanswered or skipped.
    pub ages: Ages,
    /// Transactions that succeeded, also of those that were due before.
    pub acknowledged: u64,
    /// Sessions that lost their connection, by reason.
    pub lost: BTreeMap<String, u64>,
    /// From its beginning to the last answer; 0 without one.
    pub last_ns: u64,
    /// Share of a CPU that the busiest client thread used.
    pub busiest_share: f64,
}

impl WindowCounts {
    /// Of all workers of a load.
    pub fn of(tallies: Vec<Tally>, busiest_share: f64) -> Self {
        let mut ages = histogram();
        let tally = Tally::merged(tallies);
        tally.ages.iter().for_each(|it| ages += &it.0);
        Self {
            ended: tally.total(),
            due: tally.due,
            skipped: tally.skipped,
            ages: Ages(ages),
            acknowledged: tally.acknowledged,
            last_ns: tally
                .sessions
                .iter()
                .map(|it| it.last_ns)
                .max()
                .unwrap_or(0),
            lost: tally.lost,
            busiest_share,
        }
    }

    /// The sum of several loads; there is one at least.
    pub fn sum(each: impl IntoIterator<Item = Self>) -> Self {
        let sum = each.into_iter().reduce(|mut sum, other| {
            sum.ended.add(&other.ended);
            sum.due += other.due;
            sum.skipped += other.skipped;
            sum.ages.0 += &other.ages.0;
            sum.acknowledged += other.acknowledged;
            add_counts(&mut sum.lost, &other.lost);
            sum.last_ns = sum.last_ns.max(other.last_ns);
            sum.busiest_share = sum.busiest_share.max(other.busiest_share);
            sum
        });
        sum.expect("a search has one load at least")
    }

    /// Transactions that were due, and lost, unanswered or skipped, and older than this at the end.
    pub fn unanswered_over(&self, ns: u64) -> u64 {
        self.ages.0.len() - self.ages.0.count_between(0, ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Ending;

    fn tally(latencies: &[u64]) -> Tally {
        let mut tally = Tally::new(2, 2);
        for (number, ns) in latencies.iter().enumerate() {
            tally.end(number % 2, number % 2, *ns, Ending::Ok);
            tally.note_end(&Ending::Ok);
        }
        tally.due = latencies.len() as u64 + 1;
        tally.add_age(1, 7_000, 1);
        tally.lost.insert("reset".to_owned(), 1);
        tally
    }

    #[test]
    fn loads_together_count_what_one_with_all_workers_does() {
        let (one, other) = (tally(&[1_000, 2_000, 9_000]), tally(&[3_000]));
        let apart = [one.clone(), other.clone()].map(|it| WindowCounts::of(vec![it], 0.1));
        let sum = WindowCounts::sum(apart);
        let whole = WindowCounts::of(vec![one, other], 0.1);
        let text = |it: &WindowCounts| serde_json::to_string(it).unwrap();
        assert_eq!(text(&sum), text(&whole));
        assert_eq!(
            (whole.ended.answered(), whole.due, whole.acknowledged),
            (4, 6, 4)
        );
        assert_eq!(
            (whole.unanswered_over(6_000), whole.unanswered_over(8_000)),
            (2, 0)
        );
        let back: WindowCounts = serde_json::from_str(&text(&whole)).unwrap();
        assert_eq!(text(&back), text(&whole));
    }
}
