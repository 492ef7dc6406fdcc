//! The open loop of a client thread: when transactions are due, and which of them wait for a session.
//! The schedule does not depend on completions.

use std::collections::VecDeque;

use rand::Rng;
use rand::rngs::SmallRng;
use rand_distr::Exp1;

use crate::plan::{Pace, Spread};

/// The due times of a thread's transactions, one after the other.
#[derive(Debug)]
pub struct Schedule {
    spread: Spread,
    interval_ns: f64,
    /// Kept as a float, so that rounding does not add up.
    next_ns: f64,
}

impl Schedule {
    /// `rate` transactions a second, the first one interval after `start_ns`.
    pub fn new(rate: f64, spread: Spread, start_ns: u64, random: &mut SmallRng) -> Self {
        let mut schedule = Self {
            spread,
            interval_ns: 1e9 / rate,
            next_ns: start_ns as f64,
        };
        schedule.advance(random);
        schedule
    }

    /// When the next transaction is due.
    pub fn due_ns(&self) -> u64 {
        self.next_ns as u64
    }

    /// The next due time if it is not after `now`; then the schedule moves on.
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

/// A schedule, the idle sessions, and the due transactions that wait for one.
#[derive(Debug)]
pub struct OpenLoop {
    pub schedule: Schedule,
    /// Due times.
    backlog: VecDeque<u64>,
    backlog_max: usize,
    /// The session that has been idle the longest comes first, so that all do the same share.
    idle: VecDeque<usize>,
}

/// What happens to a transaction that has become due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// This session begins it.
    Begin { session: usize, due_ns: u64 },
    /// It waits for a session.
    Waits { due_ns: u64 },
    /// Too many wait already.
    Skipped { due_ns: u64 },
}

impl Due {
    pub fn due_ns(&self) -> u64 {
        match self {
            Self::Begin { due_ns, .. } | Self::Waits { due_ns } | Self::Skipped { due_ns } => {
                *due_ns
            }
        }
    }
}

impl OpenLoop {
    /// A thread's part of an open loop that begins at `begin_ns`; `None` for a closed loop. `own` is
    /// the thread's share of all sessions.
    pub fn of(
        pace: Pace,
        begin_ns: u64,
        thread: u64,
        own: f64,
        idle: VecDeque<usize>,
        random: &mut SmallRng,
    ) -> Option<Self> {
        let Pace::Open {
            rate_per_second,
            spread,
            backlog_max,
            first_ns,
        } = pace
        else {
            return None;
        };
        let rate = rate_per_second * own;
        let mut schedule = Schedule::new(rate, spread, begin_ns, random);
        if spread == Spread::Constant {
            // The threads take turns: the first transaction of all is due after one interval.
            let interval_ns = 1e9 / rate_per_second;
            let first_ns = first_ns.map_or(interval_ns, |it| it as f64);
            schedule.next_ns = begin_ns as f64 + first_ns + interval_ns * thread as f64;
        }
        let waiting_max = (backlog_max as f64 * own).ceil() as usize;
        Some(Self::new(schedule, waiting_max, idle))
    }

    /// The next transaction that is due before the end of the load, when nothing is begun any more.
    pub fn next_unbegun(&mut self, end_ns: u64, random: &mut SmallRng) -> Option<Due> {
        self.idle.clear();
        self.next(end_ns.checked_sub(1)?, random)
    }

    pub fn new(schedule: Schedule, backlog_max: usize, idle: VecDeque<usize>) -> Self {
        Self {
            schedule,
            backlog: VecDeque::new(),
            backlog_max,
            idle,
        }
    }

    /// The next transaction that is due by `now`; `None` if there is no other.
    pub fn next(&mut self, now: u64, random: &mut SmallRng) -> Option<Due> {
        let due_ns = self.schedule.take(now, random)?;
        Some(match self.idle.pop_front() {
            Some(session) => Due::Begin { session, due_ns },
            None if self.backlog.len() < self.backlog_max => {
                self.backlog.push_back(due_ns);
                Due::Waits { due_ns }
            }
            None => Due::Skipped { due_ns },
        })
    }

    /// A session is free: the due time of the transaction that it begins; with `None` it is idle.
    pub fn free(&mut self, session: usize) -> Option<u64> {
        let due_ns = self.backlog.pop_front();
        if due_ns.is_none() {
            self.idle.push_back(session);
        }
        due_ns
    }

    /// The due times of those that wait for a session; no more become due.
    pub fn end(self) -> VecDeque<u64> {
        self.backlog
    }

    /// A session is lost, and begins no more transactions.
    pub fn remove(&mut self, session: usize) {
        self.idle.retain(|it| *it != session);
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn due_transactions_begin_wait_or_are_skipped() {
        let mut random = SmallRng::seed_from_u64(1);
        let schedule = Schedule::new(1e9, Spread::Constant, 0, &mut random);
        let mut open = OpenLoop::new(schedule, 1, [7].into());
        let session = 7;
        let begin = Due::Begin { session, due_ns: 1 };
        assert_eq!(open.next(3, &mut random), Some(begin));
        assert_eq!(open.next(3, &mut random), Some(Due::Waits { due_ns: 2 }));
        assert_eq!(open.next(3, &mut random), Some(Due::Skipped { due_ns: 3 }));
        assert_eq!(open.next(3, &mut random), None);
        assert_eq!((open.free(7), open.free(7)), (Some(2), None));
        let begin = Due::Begin { session, due_ns: 4 };
        assert_eq!(open.next(4, &mut random), Some(begin));
        assert_eq!(open.free(7), None);
        open.remove(7);
        assert_eq!(open.next(5, &mut random), Some(Due::Waits { due_ns: 5 }));
        assert_eq!(open.end(), [5]);
    }

    #[test]
    fn free_sessions_take_turns() {
        let mut random = SmallRng::seed_from_u64(1);
        let schedule = Schedule::new(1e9, Spread::Constant, 0, &mut random);
        let mut open = OpenLoop::new(schedule, 1, [4, 5, 6].into());
        let mut begun = Vec::new();
        for now in 1..=6 {
            // Each is answered before the next is due.
            let Some(Due::Begin { session, .. }) = open.next(now, &mut random) else {
                panic!("all are free");
            };
            begun.push(session);
            assert_eq!(open.free(session), None);
        }
        assert_eq!(begun, [4, 5, 6, 4, 5, 6]);
    }

    #[test]
    fn threads_share_a_constant_rate_without_a_gap_at_the_beginning() {
        let pace = Pace::Open {
            rate_per_second: 1e3,
            spread: Spread::Constant,
            backlog_max: 1,
            first_ns: None,
        };
        for threads in [1, 2, 5] {
            let mut random = SmallRng::seed_from_u64(1);
            let own = 1.0 / threads as f64;
            let of = |thread| OpenLoop::of(pace, 50, thread, own, [].into(), &mut random).unwrap();
            let mut loops: Vec<OpenLoop> = (0..threads).map(of).collect();
            let mut dues = Vec::new();
            for open in &mut loops {
                while let Some(due_ns) = open.schedule.take(10_000_050, &mut random) {
                    dues.push(due_ns);
                }
            }
            dues.sort_unstable();
            let expected: Vec<u64> = (1..=10).map(|it| 50 + it * 1_000_000).collect();
            assert_eq!(dues, expected);
        }
    }

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
