//! Streams of one kind of request.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::Exp1;

use super::{Actions, Process, Step};
use crate::request::{Direction, Io, Priority};
use crate::time::Time;

/// Where the requests of a stream lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// One after the other.
    Sequential,
    /// Anywhere in the range.
    Random,
}

/// When the next request comes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// A closed loop: so many at a time, and the next one `think` after one has ended.
    Closed { depth: usize, think: Time },
    /// An open loop: Poisson arrivals, so many a second on average.
    Poisson { per_second: f64 },
}

/// A stream of one kind of request.
#[derive(Debug, Clone)]
pub struct Stream {
    pub pattern: Pattern,
    pub pace: Pace,
    pub direction: Direction,
    pub sync: bool,
    pub sectors: u32,
    /// First sector, and how many there are.
    pub range: (u64, u64),
    pub requests: u64,
    pub priority: Priority,
    pub seed: u64,
}

impl Stream {
    /// Random reads of 4 KiB in a closed loop.
    pub fn random_reads(range: (u64, u64), requests: u64, depth: usize, seed: u64) -> Self {
        Self {
            pattern: Pattern::Random,
            pace: Pace::Closed { depth, think: 0 },
            direction: Direction::Read,
            sync: true,
            sectors: 8,
            range,
            requests,
            priority: Priority::NORMAL,
            seed,
        }
    }

    /// A process that makes these requests.
    pub fn process(self) -> Box<dyn Process> {
        Box::new(Streaming {
            random: SmallRng::seed_from_u64(self.seed),
            made: 0,
            thought: true,
            stream: self,
        })
    }
}

struct Streaming {
    stream: Stream,
    random: SmallRng,
    made: u64,
    /// In a closed loop with think time: whether that has passed.
    thought: bool,
}

impl Streaming {
    fn io(&mut self) -> Io {
        let Stream { range, sectors, .. } = self.stream;
        let places = range.1 / u64::from(sectors);
        let place = match self.stream.pattern {
            Pattern::Sequential => self.made % places,
            Pattern::Random => self.random.random_range(0..places),
        };
        self.made += 1;
        Io {
            sector: range.0 + place * u64::from(sectors),
            sectors,
            direction: self.stream.direction,
            sync: self.stream.sync,
        }
    }
}

impl Process for Streaming {
    fn step(&mut self, _now: Time, actions: &mut Actions) -> Step {
        if self.made == self.stream.requests {
            return Step::End;
        }
        match self.stream.pace {
            Pace::Closed { think, .. } if think > 0 && !self.thought => {
                self.thought = true;
                Step::Sleep(think)
            }
            Pace::Closed { depth, .. } => {
                self.thought = false;
                let io = self.io();
                actions.ios.push(io);
                Step::Wait { below: depth }
            }
            Pace::Poisson { per_second } => {
                if self.made > 0 || !self.thought {
                    let io = self.io();
                    actions.ios.push(io);
                }
                self.thought = false;
                let gap: f64 = self.random.sample(Exp1);
                Step::Sleep((gap / per_second * 1e9) as Time)
            }
        }
    }

    fn priority(&self) -> Priority {
        self.stream.priority
    }
}
