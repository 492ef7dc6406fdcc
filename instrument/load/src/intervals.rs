//! The intervals of all threads, put together as they come.

use std::collections::BTreeMap;

use crate::tally::Interval;

/// Sums intervals of the same number until every thread has told its part.
#[derive(Debug)]
pub struct Intervals {
    /// The last number that each thread told of.
    last: Vec<Option<u64>>,
    open: BTreeMap<u64, Interval>,
}

impl Intervals {
    pub fn of(members: u64) -> Self {
        Self {
            last: vec![None; members as usize],
            open: BTreeMap::new(),
        }
    }

    /// Adds a thread's part; hands out what is complete, in order.
    pub fn add(&mut self, member: usize, part: &Interval) -> Vec<Interval> {
        self.last[member] = Some(part.number);
        match self.open.get_mut(&part.number) {
            Some(sum) => sum.add(part),
            None => drop(self.open.insert(part.number, part.clone())),
        }
        self.complete()
    }

    /// A thread tells no more; hands out what is complete by that.
    pub fn end(&mut self, member: usize) -> Vec<Interval> {
        self.last[member] = Some(u64::MAX);
        self.complete()
    }

    fn complete(&mut self) -> Vec<Interval> {
        // A thread that has told of a later one tells no more of those before.
        let Some(complete) = self.last.iter().copied().min().flatten() else {
            return Vec::new();
        };
        let rest = match complete.checked_add(1) {
            Some(next) => self.open.split_off(&next),
            None => BTreeMap::new(),
        };
        let done = std::mem::replace(&mut self.open, rest);
        done.into_values().collect()
    }

    /// What is left when all have ended.
    pub fn rest(self) -> Vec<Interval> {
        self.open.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Tally;
    use crate::workload::Ending;

    fn part(number: u64) -> Interval {
        let mut tally = Tally::new(1, 1);
        tally.end(0, 0, 1_000, Ending::Ok);
        tally.take_interval(number)
    }

    fn counts(intervals: &[Interval]) -> Vec<(u64, u64)> {
        let count = |it: &Interval| (it.number, it.kinds[0].ok);
        intervals.iter().map(count).collect()
    }

    #[test]
    fn an_interval_is_complete_when_all_have_told_of_it_or_a_later_one() {
        let mut intervals = Intervals::of(2);
        assert_eq!(counts(&intervals.add(0, &part(0))), []);
        assert_eq!(counts(&intervals.add(0, &part(1))), []);
        assert_eq!(counts(&intervals.add(1, &part(0))), [(0, 2)]);
        assert_eq!(counts(&intervals.add(1, &part(2))), [(1, 1)]);
        assert_eq!(counts(&intervals.add(0, &part(3))), [(2, 1)]);
        assert_eq!(counts(&intervals.end(1)), [(3, 1)]);
        assert_eq!(counts(&intervals.add(0, &part(4))), [(4, 1)]);
        assert_eq!(counts(&intervals.rest()), []);
    }
}
