//! A simulated server: a queue in front of servers whose speed changes with time. The unit of time
//! is the mean service time.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::f64::consts::TAU;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Exp1, StandardNormal};

use super::super::{SystemUnderTest, Window, settle};

/// What a server does with its requests.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    pub servers: usize,
    /// Mean number of requests that arrive together, geometrically distributed.
    pub batch: f64,
    pub service: Service,
    pub speed: Speed,
    /// A pause of all servers after so many requests, and its length.
    pub collection: Option<(u64, f64)>,
    /// A pause of all servers each so much time, with its length for each request since the last one.
    pub sweep: Option<(f64, f64)>,
    /// A request takes longer by this share for each request that waits, up to twenty.
    pub congestion: f64,
    /// Share of the requests that fail, whatever the rate.
    pub failing: f64,
}

/// Service times, all of mean 1.
#[derive(Debug, Clone, Copy)]
pub enum Service {
    Exponential,
    Constant,
    /// This share of the requests takes so many times as long as the others; each exponential.
    SlowMinority {
        share: f64,
        factor: f64,
    },
    /// Sigma of the logarithm.
    Lognormal(f64),
    /// Exponent of the tail.
    Pareto(f64),
}

/// Speed of the servers over time. Mean times are those of exponential distributions.
#[derive(Debug, Clone, Copy)]
pub enum Speed {
    Steady,
    /// Stands still for `length` after a random time of mean `gap`.
    Pauses {
        gap: f64,
        length: f64,
    },
    /// As `Pauses`, with exponential lengths.
    RandomPauses {
        gap: f64,
        length: f64,
    },
    /// Stands still for `length` in each period.
    Stalls {
        period: f64,
        length: f64,
    },
    /// Full speed for a random time, this speed for another.
    Alternates {
        full: f64,
        slow: f64,
        speed: f64,
    },
    /// As `Pauses`, with lengths of a Pareto distribution of exponent 2.2.
    HeavyPauses {
        gap: f64,
        length: f64,
    },
    /// One of three speeds, each with the same chance, for a random time.
    Levels {
        stay: f64,
        speeds: [f64; 3],
    },
    /// Rises and falls as a sine by this share, beginning anywhere in its period.
    Drifts {
        period: f64,
        depth: f64,
    },
    /// Grows from this speed to full speed until a time.
    Warms {
        until: f64,
        speed: f64,
    },
    /// This speed from a time on.
    Falls {
        at: f64,
        speed: f64,
    },
}

/// A drift and a warm-up are so many steps.
const DRIFT_STEPS: f64 = 40.0;

/// More requests than these do not stay in flight from one window to the next.
const SESSIONS: f64 = 50.0;

/// A server under a search.
pub struct Simulated {
    model: Model,
    random: SmallRng,
    limits: Vec<f64>,
    windows: usize,
    length: f64,
    now: f64,
    /// When each server is free.
    free: Vec<f64>,
    /// Ends of periods of constant speed, with the speed.
    speeds: VecDeque<(f64, f64)>,
    /// The end of the last of them.
    known: f64,
    /// Where a drift begins.
    phase: f64,
    served: u64,
    /// When the next sweep begins, and how many were served at the last one.
    sweep_at: f64,
    swept: u64,
}

impl Simulated {
    pub fn new(model: Model, seed: u64, limits: &[f64], windows: usize, length: f64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        // A periodic stall may begin anywhere in its period.
        let first = match model.speed {
            Speed::Stalls { period, length } => random.random::<f64>() * (period - length),
            _ => 0.0,
        };
        let phase = match model.speed {
            Speed::Drifts { period, .. } => random.random::<f64>() * period,
            _ => 0.0,
        };
        Self {
            model,
            random,
            limits: limits.to_vec(),
            windows,
            length,
            now: 0.0,
            free: vec![0.0; model.servers],
            speeds: VecDeque::from([(first, 1.0)]),
            known: first,
            phase,
            served: 0,
            sweep_at: model.sweep.map_or(f64::INFINITY, |it| it.0),
            swept: 0,
        }
    }

    fn exponential(&mut self) -> f64 {
        self.random.sample(Exp1)
    }

    /// Of mean 1.
    fn pareto(&mut self, shape: f64) -> f64 {
        let least = (shape - 1.0) / shape;
        least * (self.exponential() / shape).exp()
    }

    fn service(&mut self) -> f64 {
        match self.model.service {
            Service::Exponential => self.exponential(),
            Service::Constant => 1.0,
            Service::SlowMinority { share, factor } => {
                let fast = 1.0 / (1.0 - share + share * factor);
                let slow = self.random.random_bool(share);
                self.exponential() * if slow { factor * fast } else { fast }
            }
            Service::Lognormal(sigma) => {
                let normal: f64 = self.random.sample(StandardNormal);
                (sigma * normal - sigma * sigma / 2.0).exp()
            }
            Service::Pareto(shape) => self.pareto(shape),
        }
    }

    /// Adds two periods of constant speed.
    fn extend(&mut self) {
        let known = self.known;
        let periods = match self.model.speed {
            Speed::Steady => [(1e12, 1.0); 2],
            Speed::Pauses { gap, length } => [(gap * self.exponential(), 1.0), (length, 0.0)],
            Speed::RandomPauses { gap, length } => [
                (gap * self.exponential(), 1.0),
                (length * self.exponential(), 0.0),
            ],
            Speed::Stalls { period, length } => [(length, 0.0), (period - length, 1.0)],
            Speed::Alternates { full, slow, speed } => [
                (full * self.exponential(), 1.0),
                (slow * self.exponential(), speed),
            ],
            Speed::HeavyPauses { gap, length } => [
                (gap * self.exponential(), 1.0),
                (length * self.pareto(2.2), 0.0),
            ],
            Speed::Levels { stay, speeds } => [(); 2].map(|()| {
                let speed = speeds[self.random.random_range(0..speeds.len())];
                (stay * self.exponential(), speed)
            }),
            Speed::Drifts { period, depth } => [0.0, 1.0].map(|it| {
                let step = period / DRIFT_STEPS;
                let angle = (known + it * step + self.phase) / period * TAU;
                (step, 1.0 + depth * angle.sin())
            }),
            Speed::Warms { until, speed } if known < until => [0.0, 1.0].map(|it| {
                let step = until / DRIFT_STEPS;
                let done = (known + it * step) / until;
                (step, speed + (1.0 - speed) * done.min(1.0))
            }),
            Speed::Warms { .. } => [(1e12, 1.0); 2],
            Speed::Falls { at, speed } if known < at => [(at - known, 1.0), (1e12, speed)],
            Speed::Falls { speed, .. } => [(1e12, speed); 2],
        };
        for (length, speed) in periods {
            self.known += length;
            self.speeds.push_back((self.known, speed));
        }
    }

    /// When work is done that begins at `start`; no later work begins earlier.
    fn done(&mut self, start: f64, mut work: f64) -> f64 {
        while self.speeds.front().is_some_and(|it| it.0 <= start) || self.known <= start {
            if self.speeds.is_empty() {
                self.extend();
            } else {
                self.speeds.pop_front();
            }
        }
        let (mut time, mut index) = (start, 0);
        loop {
            if index == self.speeds.len() {
                self.extend();
            }
            let (end, speed) = self.speeds[index];
            if (end - time) * speed >= work {
                return time + work / speed;
            }
            work -= (end - time) * speed;
            (time, index) = (end, index + 1);
        }
    }

    /// The pause that begins before a time, if one does.
    fn sweep(&mut self, time: f64) {
        while let Some((period, cost)) = self.model.sweep
            && self.sweep_at <= time
        {
            let length = cost * (self.served - self.swept) as f64;
            let end = self.sweep_at + length;
            for free in &mut self.free {
                *free = free.max(end);
            }
            self.swept = self.served;
            self.sweep_at = end.max(self.sweep_at + period);
        }
    }

    /// When a request is answered that arrives now: by the server that is free first.
    fn answered(&mut self) -> f64 {
        let first = self
            .free
            .iter()
            .enumerate()
            .min_by(|a, b| a.1.total_cmp(b.1))
            .map_or(0, |it| it.0);
        let start = self.free[first].max(self.now);
        self.sweep(start);
        let start = self.free[first].max(self.now);
        let waiting = (start - self.now).min(20.0);
        let work = self.service() * (1.0 + self.model.congestion * waiting);
        let end = self.done(start, work);
        self.free[first] = end;
        self.served += 1;
        if let Some((requests, length)) = self.model.collection
            && self.served.is_multiple_of(requests)
        {
            for free in &mut self.free {
                *free = free.max(end) + length;
            }
        }
        end
    }

    /// Requests at a rate for a time: when each was due, and how long it took.
    pub fn load(&mut self, rate: f64, time: f64, mut each: impl FnMut(&mut Self, f64, f64)) {
        let end = self.now + time;
        let batch = self.model.batch;
        loop {
            self.now += self.exponential() * batch / rate;
            if self.now >= end {
                self.now = end;
                return;
            }
            loop {
                let (due, answered) = (self.now, self.answered());
                each(self, due, answered - due);
                if batch <= 1.0 || self.random.random_bool(1.0 / batch) {
                    break;
                }
            }
        }
    }
}

impl SystemUnderTest for Simulated {
    type Error = Infallible;

    fn closed_loop(&mut self) -> Result<Option<f64>, Infallible> {
        // There is always a request for a server that becomes free.
        let (end, mut answered) = (self.now + self.length, 0.0);
        while self.free.iter().any(|it| *it < end) {
            self.answered();
            answered += 1.0;
        }
        self.now = end;
        Ok(Some(answered / self.length))
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
        // Requests that wait in the client are dropped when a window begins.
        let longest = self.now + SESSIONS / self.model.servers as f64;
        for free in &mut self.free {
            *free = free.min(longest);
        }
        self.load(rate, self.length * settle(self.windows), |_, _, _| ());
        self.load(rate, self.length, |own, _, taken| {
            let failed = own.random.random_bool(own.model.failing);
            window.requests += 1;
            for (bad, limit) in window.bad.iter_mut().zip(&own.limits) {
                *bad += u64::from(failed || taken > *limit);
            }
        });
        Ok(Some(window))
    }
}

/// The limits that these shares of the requests exceed at a rate, from a long load.
pub fn limits(model: Model, rate: f64, shares: &[f64], requests: f64, seed: u64) -> Vec<f64> {
    let mut server = Simulated::new(model, seed, &[], 0, 0.0);
    let mut taken = Vec::with_capacity((requests * 1.01) as usize);
    server.load(rate, requests / rate, |_, _, it| taken.push(it as f32));
    let count = taken.len() as f64;
    let limit = |share: &f64| {
        let rank = ((1.0 - share) * count) as usize;
        f64::from(*taken.select_nth_unstable_by(rank, f32::total_cmp).1)
    };
    shares.iter().map(limit).collect()
}
