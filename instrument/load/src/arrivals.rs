//! When requests are due in an open loop. Pure: a schedule knows nothing of completions.

use rand::Rng;
use rand::rngs::SmallRng;
use rand_distr::Exp1;
use serde::{Deserialize, Serialize};

/// How the times between arrivals are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// All alike.
    Constant,
    /// Exponential: independent users.
    Poisson,
}

/// The intended times of one thread's requests, one after the other.
#[derive(Debug)]
pub struct Schedule {
    spread: Spread,
    interval_ns: f64,
    /// Kept as a float, so that rounding does not add up.
    next_ns: f64,
}

impl Schedule {
    /// `rate` requests a second, the first one interval after `start_ns`.
    pub fn new(rate: f64, spread: Spread, start_ns: u64, random: &mut SmallRng) -> Self {
        let mut schedule = Self {
            spread,
            interval_ns: 1e9 / rate,
            next_ns: start_ns as f64,
        };
        schedule.advance(random);
        schedule
    }

    /// When the next request is due.
    pub fn due_ns(&self) -> u64 {
        self.next_ns as u64
    }

    /// The due time that has come by `now`, if one has; the schedule moves on.
    pub fn take(&mut self, now: u64, random: &mut SmallRng) -> Option<u64> {
        let due = self.due_ns();
        if due > now {
            return None;
        }
        self.advance(random);
        Some(due)
    }

    fn advance(&mut self, random: &mut SmallRng) {
        self.next_ns += self.interval_ns
            * match self.spread {
                Spread::Constant => 1.0,
                Spread::Poisson => random.sample::<f64, _>(Exp1),
            };
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn a_constant_rate_does_not_drift() {
        let mut random = SmallRng::seed_from_u64(1);
        let mut schedule = Schedule::new(3.0, Spread::Constant, 0, &mut random);
        let dues: Vec<u64> = (0..3_000_000)
            .map(|_| schedule.take(u64::MAX, &mut random).unwrap())
            .collect();
        assert_eq!(dues[0], 333_333_333);
        assert!(dues[2_999_999].abs_diff(1_000_000_000_000_000) < 1_000_000);
    }

    #[test]
    fn poisson_arrivals_have_the_mean_and_spread_of_the_exponential() {
        let mut random = SmallRng::seed_from_u64(2);
        let mut schedule = Schedule::new(1000.0, Spread::Poisson, 0, &mut random);
        let dues: Vec<f64> = (0..200_000)
            .map(|_| schedule.take(u64::MAX, &mut random).unwrap() as f64)
            .collect();
        let gaps: Vec<f64> = dues.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.02);
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02);
    }

    #[test]
    fn nothing_is_due_before_its_time() {
        let mut random = SmallRng::seed_from_u64(3);
        let mut schedule = Schedule::new(1000.0, Spread::Constant, 5, &mut random);
        assert_eq!(schedule.take(1_000_004, &mut random), None);
        assert_eq!(schedule.take(1_000_005, &mut random), Some(1_000_005));
        assert_eq!(schedule.due_ns(), 2_000_005);
    }
}
