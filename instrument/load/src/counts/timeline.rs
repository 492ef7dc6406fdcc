//! Answers over time: how many came in each slot of the measured time, and how long they took.
//!
//! A slot has a coarse histogram: sixteen buckets for each doubling, so 6 % wide. Recording an answer
//! is an index and two additions; nothing is allocated after the task has begun.

use serde::{Deserialize, Serialize};

/// Number of slots: of a run that ends by a number, between half of them and all are used.
pub const SLOTS: usize = 96;
/// The first width of the slots of a run that ends by a number; it doubles when they are full.
const FIRST_WIDTH_NS: u64 = 1 << 16;
/// Latencies below 2^10 ns share a bucket; those from 2^42 ns (73 minutes) on as well.
const FIRST_BIT: u32 = 10;
const BITS: u32 = 32;
const BUCKETS: usize = (BITS as usize) << 4;

/// The slots of a worker, or the sum of those of all workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Sparse", into = "Sparse")]
pub struct Timeline {
    width_ns: u64,
    /// Whether all slots together are the measured time; otherwise their width doubles.
    is_fixed: bool,
    /// The slot of the latest answer, and its end.
    current: usize,
    current_end_ns: u64,
    answered: Vec<u32>,
    /// [`BUCKETS`] for each slot.
    buckets: Vec<u32>,
}

impl Timeline {
    /// For a measured time of this length; `None` if it is not known.
    pub fn new(length_ns: Option<u64>) -> Self {
        let width_ns = length_ns.map_or(FIRST_WIDTH_NS, |it| it.div_ceil(SLOTS as u64).max(1));
        Self {
            width_ns,
            is_fixed: length_ns.is_some(),
            current: 0,
            current_end_ns: width_ns,
            answered: vec![0; SLOTS],
            buckets: vec![0; SLOTS * BUCKETS],
        }
    }

    pub fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// Number of slots up to the last answer; all of them if the length was known.
    pub fn used(&self) -> usize {
        match self.is_fixed {
            true => SLOTS,
            false => self.current + 1,
        }
    }

    /// Answers in each slot in use.
    pub fn answered(&self) -> &[u32] {
        &self.answered[..self.used()]
    }

    /// The coarse histogram of a slot.
    pub fn buckets(&self, slot: usize) -> &[u32] {
        &self.buckets[slot * BUCKETS..(slot + 1) * BUCKETS]
    }

    /// Records an answer; times are since measuring began, in their order.
    pub fn record(&mut self, at_ns: u64, latency_ns: u64) {
        while at_ns >= self.current_end_ns {
            if !self.advance() {
                break;
            }
        }
        self.answered[self.current] += 1;
        self.buckets[self.current * BUCKETS + bucket(latency_ns)] += 1;
    }

    /// Adds transactions that were not answered: they are in the histograms, and no answers.
    pub fn add_unanswered(&mut self, due_ns: u64, age_ns: u64, count: u64) {
        let slot = ((due_ns / self.width_ns) as usize).min(self.used() - 1);
        let bucket = &mut self.buckets[slot * BUCKETS + bucket(age_ns)];
        *bucket = bucket.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// Adds the answers of another worker in the same time.
    pub fn add(&mut self, other: &Self) {
        let mut other = other.clone();
        while other.width_ns < self.width_ns {
            other.fold();
        }
        while self.width_ns < other.width_ns {
            self.fold();
        }
        self.current = self.current.max(other.current);
        self.current_end_ns = (self.current as u64 + 1) * self.width_ns;
        let pairs = self.answered.iter_mut().zip(&other.answered);
        let all = pairs.chain(self.buckets.iter_mut().zip(&other.buckets));
        all.for_each(|(own, other)| *own = own.saturating_add(*other));
    }

    /// Goes to the next slot; `false` if there is none, because the measured time is over.
    fn advance(&mut self) -> bool {
        if self.current + 1 == SLOTS {
            if self.is_fixed {
                return false;
            }
            self.fold();
        }
        self.current += 1;
        self.current_end_ns += self.width_ns;
        true
    }

    /// Makes one slot of each two.
    fn fold(&mut self) {
        for slot in 0..SLOTS {
            let answered = std::mem::take(&mut self.answered[slot]);
            self.answered[slot / 2] += answered;
            for bucket in 0..BUCKETS {
                let count = std::mem::take(&mut self.buckets[slot * BUCKETS + bucket]);
                self.buckets[slot / 2 * BUCKETS + bucket] += count;
            }
        }
        self.width_ns *= 2;
        self.current /= 2;
        self.current_end_ns = (self.current as u64 + 1) * self.width_ns;
    }
}

/// The bucket of a latency.
pub fn bucket(ns: u64) -> usize {
    let ns = ns.max(1 << FIRST_BIT);
    let bit = 63 - ns.leading_zeros();
    let within = (ns >> (bit - 4)) as usize & 15;
    (((bit - FIRST_BIT) as usize) << 4 | within).min(BUCKETS - 1)
}

/// The middle of a bucket, in ns.
pub fn bucket_ns(bucket: usize) -> f64 {
    let octave = (1u64 << (FIRST_BIT as usize + (bucket >> 4))) as f64;
    octave * (1.0 + ((bucket & 15) as f64 + 0.5) / 16.0)
}

/// The form in which a process passes it on: most buckets are empty.
#[derive(Serialize, Deserialize)]
struct Sparse {
    width_ns: u64,
    is_fixed: bool,
    current: usize,
    answered: Vec<u32>,
    buckets: Vec<(u32, u32)>,
}

impl From<Timeline> for Sparse {
    fn from(timeline: Timeline) -> Self {
        let counts = timeline.buckets.iter().enumerate();
        let counts = counts.filter(|(_, count)| **count > 0);
        Self {
            width_ns: timeline.width_ns,
            is_fixed: timeline.is_fixed,
            current: timeline.current,
            buckets: counts
                .map(|(index, count)| (index as u32, *count))
                .collect(),
            answered: timeline.answered,
        }
    }
}

impl From<Sparse> for Timeline {
    fn from(sparse: Sparse) -> Self {
        let mut buckets = vec![0; SLOTS * BUCKETS];
        for (index, count) in sparse.buckets {
            buckets[index as usize] = count;
        }
        Self {
            width_ns: sparse.width_ns,
            is_fixed: sparse.is_fixed,
            current: sparse.current,
            current_end_ns: (sparse.current as u64 + 1) * sparse.width_ns,
            answered: sparse.answered,
            buckets,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_are_in_order_and_narrow() {
        let mut last = 0;
        for ns in (1..4_000_000u64).step_by(37) {
            let found = bucket(ns);
            assert!(found == last || found == last + 1, "{ns}");
            last = found;
            if ns > 1024 {
                assert!((bucket_ns(found) / ns as f64 - 1.0).abs() < 0.0625, "{ns}");
            }
        }
        assert_eq!((bucket(0), bucket(u64::MAX)), (0, BUCKETS - 1));
    }

    proptest! {
        #[test]
        fn every_answer_is_in_one_slot(mut times in prop::collection::vec(0u64..10_000_000_000, 1..300), parts in 1usize..4) {
            times.sort_unstable();
            let mut timelines = vec![Timeline::new(None); parts];
            for (index, at_ns) in times.iter().enumerate() {
                timelines[index % parts].record(*at_ns, 5_000);
            }
            let mut all = timelines.pop().unwrap();
            for other in &timelines {
                all.add(other);
            }
            let counted: u32 = all.answered().iter().sum();
            prop_assert_eq!(counted as usize, times.len());
            for (slot, count) in all.answered().iter().enumerate() {
                let begin = slot as u64 * all.width_ns();
                let inside = times.iter().filter(|it| (begin..begin + all.width_ns()).contains(it));
                prop_assert_eq!(inside.count(), *count as usize);
                prop_assert_eq!(all.buckets(slot)[bucket(5_000)], *count);
            }
            let text = serde_json::to_string(&all).unwrap();
            prop_assert_eq!(serde_json::from_str::<Timeline>(&text).unwrap(), all);
        }

        #[test]
        fn a_known_length_is_divided_evenly(length_ns in 1_000u64..5_000_000_000, at in 0.0..=1.0) {
            let mut timeline = Timeline::new(Some(length_ns));
            timeline.record((at * length_ns as f64) as u64, 1);
            prop_assert_eq!(timeline.answered().iter().sum::<u32>(), 1);
            prop_assert_eq!(timeline.used(), SLOTS);
        }
    }
}
