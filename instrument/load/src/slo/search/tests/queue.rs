//! A simulated server with a known law of latency.

use std::convert::Infallible;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::Exp1;

use super::super::{SystemUnderTest, Window};

/// Poisson arrivals, exponential service of mean 1 (M/M/c).
pub struct Queue {
    random: SmallRng,
    pub servers: usize,
    limits: Vec<f64>,
    windows: usize,
    length: f64,
    /// Share of requests that fail, whatever the rate.
    pub failing: f64,
}

/// Share of the requests that take longer than t at one server or two.
fn exceeding(servers: usize, rate: f64, t: f64) -> f64 {
    if servers == 1 {
        return (-(1.0 - rate) * t).exp();
    }
    let busy = rate * rate / 2.0 / (1.0 - rate / 2.0);
    let waits = busy / (1.0 + rate + busy);
    (-t).exp() * (1.0 + waits * (1.0 - (-(1.0 - rate) * t).exp()) / (1.0 - rate))
}

/// The limit on latency that a share of the requests exceeds at this rate.
pub fn limit(servers: usize, rate: f64, share: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e4);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        match exceeding(servers, rate, middle) > share {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

impl SystemUnderTest for Queue {
    type Error = Infallible;

    fn closed_loop(&mut self) -> Result<Option<f64>, Infallible> {
        Ok(Some(self.servers as f64))
    }

    fn window(&mut self, rate: f64) -> Result<Option<Window>, Infallible> {
        if self.windows == 0 {
            return Ok(None);
        }
        self.windows -= 1;
        let mut window = Window {
            rate,
            requests: 0,
            bad: vec![0; self.limits.len()],
        };
        // From an empty queue; the first quarter settles. A request goes to the server that is
        // free first.
        let (mut now, mut free) = (0.0, vec![0.0_f64; self.servers]);
        let end = self.length * 1.25;
        loop {
            now += self.random.sample::<f64, _>(Exp1) / rate;
            if now >= end {
                return Ok(Some(window));
            }
            let first = free.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap();
            *first = first.max(now) + self.random.sample::<f64, _>(Exp1);
            let taken = *first - now;
            let failed = self.random.random_bool(self.failing);
            if now < self.length / 4.0 {
                continue;
            }
            window.requests += 1;
            for (bad, limit) in window.bad.iter_mut().zip(&self.limits) {
                *bad += u64::from(failed || taken > *limit);
            }
        }
    }
}

pub fn queue(seed: u64, limits: &[f64], windows: usize, length: f64) -> Queue {
    Queue {
        servers: 1,
        random: SmallRng::seed_from_u64(seed),
        limits: limits.to_vec(),
        windows,
        length,
        failing: 0.0,
    }
}
