//! The distribution of latencies, with those of transactions that were not answered: of these only
//! the age at the end of the measured time is known, and the latency is at least that (they are
//! censored).
//!
//! A percentile is that of all transactions that were due, each unanswered one with its age. So it
//! is never above the true one. Whether it may be well below shows the estimate of Kaplan and Meier
//! (1958), which gives each unanswered transaction the distribution of those that took longer than
//! its age: where that is above, or nowhere, the percentile is marked as a lower bound.
//!
//! The interval is that of order statistics, which knows no distribution. Latencies that follow each
//! other are alike (a pause of the server makes many slow together), so the number of independent
//! ones is less than their number. How much less shows the scatter, between batches of slots of
//! the measured time, of the share above the percentile: the greatest of the design effects with
//! batches of one, two, four and eight slots is taken, with Student's t in place of the normal
//! distribution for the few batches (Korn and Graubard 1998).

use hdrhistogram::Histogram;
use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::beta::beta_reg;

use crate::counts::histogram::histogram;
use crate::counts::timeline::{Timeline, bucket};

/// A percentile is marked as a lower bound if the estimate for it is above by more than this.
const TOLERANCE: f64 = 0.01;
/// Error probability of an interval, on each side.
const TAIL: f64 = 0.025;
/// The standard normal quantile for it.
const NORMAL: f64 = 1.959_964;
/// Slots in a batch.
const BATCHES: [usize; 4] = [1, 2, 4, 8];
/// Fewer batches say too little about their scatter.
const BATCHES_MIN: usize = 8;

/// A percentile of the latencies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percentile {
    pub ns: u64,
    /// The ends of its 95 % interval, where they are known.
    pub low_ns: Option<u64>,
    pub high_ns: Option<u64>,
    /// The value is a lower bound: the true one depends on transactions that were not answered.
    pub is_censored: bool,
}

/// A mean or a greatest value, and whether it is only a lower bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounded {
    pub ns: f64,
    pub is_censored: bool,
}

/// Latencies of transactions that were answered, and ages of those that were not.
#[derive(Debug)]
pub struct Distribution {
    answered: Histogram<u64>,
    unanswered: Histogram<u64>,
    /// Both together.
    all: Histogram<u64>,
}

impl Distribution {
    pub fn new(answered: Histogram<u64>, unanswered: Option<Histogram<u64>>) -> Self {
        let unanswered = unanswered.unwrap_or_else(histogram);
        let mut all = answered.clone();
        all += &unanswered;
        Self {
            answered,
            unanswered,
            all,
        }
    }

    /// Latencies of those that were answered.
    pub fn answered(&self) -> &Histogram<u64> {
        &self.answered
    }

    /// Ages at the end of those that were not.
    pub fn unanswered(&self) -> &Histogram<u64> {
        &self.unanswered
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn mean(&self) -> Bounded {
        let ns = self.all.mean();
        let is_censored = self.answered.is_empty() || ns > self.answered.mean() * (1.0 + TOLERANCE);
        Bounded {
            ns,
            is_censored: is_censored && !self.unanswered.is_empty(),
        }
    }

    pub fn max(&self) -> Bounded {
        Bounded {
            ns: self.all.max() as f64,
            is_censored: self.unanswered.max() > self.answered.max(),
        }
    }

    /// The percentile below which this share of the latencies lies. The timeline is that of the same
    /// transactions; without one there is no interval.
    pub fn percentile(&self, share: f64, timeline: Option<&Timeline>) -> Percentile {
        let ns = self.all.value_at_quantile(share);
        let (mut low_ns, mut high_ns) = (None, None);
        if let Some(effect) = timeline.and_then(|it| design_effect(it, ns, 1.0 - share)) {
            let total = self.all.len() as f64;
            let (low, high) = order_statistics(total / effect, share);
            let at = |part: f64| self.all.value_at_quantile(part.clamp(0.0, 1.0));
            low_ns = low.map(at);
            high_ns = high.filter(|it| !self.is_censored(*it)).map(at);
        }
        Percentile {
            ns,
            low_ns: low_ns.map(|it| it.min(ns)),
            high_ns: high_ns.map(|it| it.max(ns)),
            is_censored: self.is_censored(share),
        }
    }

    /// Whether the percentile with this share below it is only a lower bound.
    fn is_censored(&self, share: f64) -> bool {
        if self.unanswered.is_empty() {
            return false;
        }
        let bound = self.all.value_at_quantile(share.min(1.0)) as f64;
        let estimate = self.kaplan_meier(share);
        estimate.is_none_or(|ns| ns as f64 > bound * (1.0 + TOLERANCE))
    }

    /// The percentile by Kaplan and Meier; `None` if it is beyond the last answer.
    fn kaplan_meier(&self, share: f64) -> Option<u64> {
        let mut at_risk = self.all.len() as f64;
        let mut surviving = 1.0;
        for value in self.all.iter_recorded() {
            let ns = value.value_iterated_to();
            let answered = self.answered.count_at(ns) as f64;
            surviving *= 1.0 - answered / at_risk;
            at_risk -= value.count_at_value() as f64;
            if surviving <= 1.0 - share + 1e-9 {
                return Some(ns);
            }
        }
        None
    }
}

/// How many times fewer independent latencies there were than latencies, for the share of those above
/// `ns`, which is about `share_above`; `None` if there are too few slots to tell. At least 1.
fn design_effect(timeline: &Timeline, ns: u64, share_above: f64) -> Option<f64> {
    let edge = bucket(ns);
    // The percentile lies within a bucket: of its two edges that one counts which the share fits.
    let counts = |from: usize| -> Vec<(f64, f64)> {
        let sums = |slot: usize| {
            let buckets = timeline.buckets(slot);
            let above: u64 = buckets[from..].iter().map(|it| u64::from(*it)).sum();
            let all: u64 = buckets.iter().map(|it| u64::from(*it)).sum();
            (above as f64, all as f64)
        };
        (0..timeline.used()).map(sums).collect()
    };
    let share = |counts: &[(f64, f64)]| {
        let (above, all) = counts.iter().fold((0.0, 0.0), add);
        above / all
    };
    let edges = [counts(edge), counts(edge + 1)].map(|it| (share(&it), it));
    let off = |it: &&(f64, Vec<(f64, f64)>)| (it.0 - share_above).abs();
    let usable = edges.iter().filter(|it| it.0 > 0.0 && it.0 < 1.0);
    let Some((share, counts)) = usable.min_by(|one, other| off(one).total_cmp(&off(other))) else {
        // All of them are in one bucket, as alike as they can be.
        return (timeline.used() >= BATCHES_MIN).then_some(1.0);
    };
    let effects = BATCHES.iter().filter_map(|size| {
        let batches: Vec<(f64, f64)> = counts
            .chunks_exact(*size)
            .map(|it| it.iter().fold((0.0, 0.0), add))
            .collect();
        let number = batches.len();
        if number < BATCHES_MIN {
            return None;
        }
        let total: f64 = batches.iter().map(|it| it.1).sum();
        let scatter: f64 = batches
            .iter()
            .map(|(above, all)| (above - share * all).powi(2))
            .sum();
        let degrees = number as f64 - 1.0;
        let variance = scatter * number as f64 / degrees;
        let student = StudentsT::new(0.0, 1.0, degrees).expect("at least seven degrees");
        let wider = student.inverse_cdf(1.0 - TAIL) / NORMAL;
        Some(variance / (total * share * (1.0 - share)) * wider * wider)
    });
    effects.reduce(f64::max).map(|it| it.max(1.0))
}

fn add(sum: (f64, f64), it: &(f64, f64)) -> (f64, f64) {
    (sum.0 + it.0, sum.1 + it.1)
}

/// The shares of the sample below which the ends of the interval of a percentile lie, with so many
/// independent values; `None` where the sample has no value that is an end.
fn order_statistics(values: f64, share: f64) -> (Option<f64>, Option<f64>) {
    // The probability that at least `rank` of the values lie below the true percentile.
    let at_least = |rank: f64| beta_reg(rank, values - rank + 1.0, share);
    let find = |probability: f64| {
        let (mut low, mut high) = (1e-9, values);
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            match at_least(middle) > probability {
                true => low = middle,
                false => high = middle,
            }
        }
        high
    };
    if values < 1.0 {
        return (None, None);
    }
    let low = (at_least(1.0) >= 1.0 - TAIL).then(|| (find(1.0 - TAIL).floor() / values).min(share));
    let high = (at_least(values) <= TAIL).then(|| (find(TAIL).ceil() / values).min(1.0));
    (low, high)
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};
    use rand_distr::{Distribution as _, Exp1, StandardNormal};

    use super::*;

    fn of(answered: &[u64], unanswered: &[u64]) -> Distribution {
        let fill = |values: &[u64]| {
            let mut filled = histogram();
            values.iter().for_each(|it| filled.saturating_record(*it));
            filled
        };
        Distribution::new(fill(answered), Some(fill(unanswered)))
    }

    #[test]
    fn the_age_of_the_unanswered_is_a_lower_bound() {
        let hanging: Vec<u64> = (1..=500).map(|it| it * 1_000_000).collect();
        let found = of(&[1_000_000; 500], &hanging);
        assert!(!found.percentile(0.4, None).is_censored);
        for (share, ns) in [(0.75, 250e6), (0.99, 490e6), (0.999, 499e6)] {
            let percentile = found.percentile(share, None);
            assert!(percentile.is_censored, "{share}");
            assert!(
                (percentile.ns as f64 / ns - 1.0).abs() < 0.005,
                "{percentile:?}"
            );
        }
        assert!(found.mean().is_censored && found.max().is_censored);
    }

    #[test]
    fn what_is_as_young_as_usual_marks_nothing() {
        let answered: Vec<u64> = (1..=10_000).map(|it| it * 1_000).collect();
        let found = of(&answered, &[1_000_000, 2_000_000, 5_000_000]);
        for share in [0.5, 0.9, 0.99, 0.999] {
            assert!(!found.percentile(share, None).is_censored, "{share}");
        }
        assert!(!found.mean().is_censored && !found.max().is_censored);
    }

    #[test]
    fn a_slow_tail_does_not_vouch_for_those_that_hang() {
        // One in a hundred takes a second; an eighth hangs for half a second.
        let mut answered = vec![1_000_000; 3465];
        answered.extend([1_000_000_000; 35]);
        let hanging: Vec<u64> = (1..=500).map(|it| it * 1_000_000).collect();
        assert!(of(&answered, &hanging).percentile(0.95, None).is_censored);
    }

    #[test]
    fn nothing_answered_is_all_lower_bounds() {
        let found = of(&[], &[5, 6, 7]);
        assert!(found.percentile(0.5, None).is_censored);
        assert!(found.mean().is_censored && found.max().is_censored);
    }

    #[test]
    fn ends_that_the_sample_does_not_have_are_absent() {
        // Conover (1999), table A3: of 10 values, the second and the ninth hold the median.
        let (low, high) = order_statistics(10.0, 0.5);
        assert_eq!((low, high), (Some(0.2), Some(0.9)));
        let (low, high) = order_statistics(1000.0, 0.999);
        assert!(low.is_some() && high.is_none());
        assert_eq!(order_statistics(5.0, 0.5), (None, None));
    }

    /// How often the intervals of p50 and p99 hold the true percentile, of 300 runs of 8 s with latencies
    /// from `draw`; the truth is that of a hundred times as many latencies.
    fn coverage(draw: fn(&mut SmallRng, &mut f64) -> f64) -> [f64; 2] {
        const RUNS: usize = 300;
        const REQUESTS: u64 = 8000;
        let latencies = |seed: u64, count: u64| -> Vec<u64> {
            let mut random = SmallRng::seed_from_u64(seed);
            let mut state = 0.0;
            (0..count)
                .map(|_| (1e6 * draw(&mut random, &mut state)) as u64)
                .collect()
        };
        let long = of(&latencies(0, 200 * REQUESTS), &[]);
        let shares = [0.5, 0.99];
        let truth = shares.map(|it| long.percentile(it, None).ns);
        let mut held = [0; 2];
        for run in 1..=RUNS {
            let mut timeline = Timeline::new(Some(REQUESTS * 1_000_000));
            let values = latencies(run as u64, REQUESTS);
            for (index, ns) in values.iter().enumerate() {
                timeline.record(index as u64 * 1_000_000, *ns);
            }
            let found = of(&values, &[]);
            for (index, share) in shares.into_iter().enumerate() {
                let percentile = found.percentile(share, Some(&timeline));
                let low = percentile.low_ns.unwrap_or(0);
                let high = percentile.high_ns.unwrap_or(u64::MAX);
                held[index] += usize::from((low..=high).contains(&truth[index]));
            }
        }
        held.map(|it| it as f64 / RUNS as f64)
    }

    #[test]
    fn intervals_hold_the_percentiles_of_independent_latencies() {
        let held = coverage(|random, _| {
            let normal: f64 = StandardNormal.sample(random);
            (0.5 * normal).exp()
        });
        assert!(held.iter().all(|it| *it >= 0.93), "{held:?}");
    }

    #[test]
    fn intervals_hold_the_percentiles_under_bursts() {
        // Pauses of 50 to 150 requests, one in 1000 on the average: all that are due in one wait
        // until it ends.
        let held = coverage(|random, left| {
            let service: f64 = random.sample(Exp1);
            if *left <= 0.0 && random.random_bool(0.001) {
                *left = random.random_range(50.0..150.0);
            }
            *left -= 1.0;
            left.max(0.0) + service
        });
        assert!(held.iter().all(|it| *it >= 0.90), "{held:?}");
    }

    #[test]
    fn intervals_hold_the_percentiles_under_a_slow_drift() {
        // An AR(1) load with a memory of 100 requests.
        let held = coverage(|random, state| {
            let noise: f64 = StandardNormal.sample(random);
            *state = 0.99 * *state + (1.0f64 - 0.99 * 0.99).sqrt() * noise;
            let service: f64 = random.sample(Exp1);
            (0.5 * *state).exp() * (1.0 + service)
        });
        assert!(held.iter().all(|it| *it >= 0.90), "{held:?}");
    }
}
