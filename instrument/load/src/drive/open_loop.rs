//! The open loop of a client thread: when transactions are due, and which of them wait for a session.
//! The schedule does not depend on completions.

use std::collections::VecDeque;

use rand::Rng;
use rand::rngs::SmallRng;
use rand_distr::Exp1;

use crate::plan::{Pace, Part, Spread, Task};

/// The due times of a thread's transactions, one after the other.
#[derive(Debug)]
pub struct Schedule {
    arrivals: Arrivals,
    /// Kept as a float, so that rounding does not add up.
    next_ns: f64,
}

#[derive(Debug)]
enum Arrivals {
    /// At random, so far apart on average.
    Poisson {
        interval_ns: f64,
    },
    Turns(Turns),
}

/// Constant arrivals of all sessions of a load, and which of them are this thread's. Each turn is that of
/// one session, and all know which one: so the arrivals of all threads, and of all processes, are one
/// constant rate, however the sessions are divided.
#[derive(Debug)]
struct Turns {
    start_ns: f64,
    interval_ns: f64,
    own: Part,
    /// The turns so far of all sessions, and the session of the next one.
    count: u64,
    session: u64,
    /// From the session of a turn to that of the next one, so that those of any part are spread evenly.
    step: u64,
}

impl Turns {
    fn new(rate: f64, own: &Part, start_ns: u64) -> Self {
        Self {
            start_ns: start_ns as f64,
            interval_ns: 1e9 / rate,
            own: own.clone(),
            count: 0,
            session: 0,
            step: step(own.all),
        }
    }

    /// When the next turn of this thread is.
    fn next_ns(&mut self) -> f64 {
        loop {
            let is_own = self.own.sessions.contains(&self.session);
            self.session = (self.session + self.step) % self.own.all;
            self.count += 1;
            if is_own {
                return self.start_ns + self.interval_ns * self.count as f64;
            }
        }
    }
}

/// A step through so many sessions that comes to each once and leaves no part of them for long: near to
/// the golden section, and without a common divisor.
fn step(all: u64) -> u64 {
    let golden = (all as f64 * 0.618_033_988_749_894_9).round() as u64;
    let fits = |step: &u64| gcd(*step, all) == 1;
    (golden.max(1)..=all).find(fits).unwrap_or(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

impl Schedule {
    /// The part of some sessions in `rate` transactions a second of all; the first of all is due one
    /// interval after `start_ns`.
    pub fn new(
        rate: f64,
        spread: Spread,
        own: &Part,
        start_ns: u64,
        random: &mut SmallRng,
    ) -> Self {
        let arrivals = match spread {
            Spread::Poisson => Arrivals::Poisson {
                interval_ns: 1e9 / (rate * own.share()),
            },
            Spread::Constant => Arrivals::Turns(Turns::new(rate, own, start_ns)),
        };
        let mut schedule = Self {
            arrivals,
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
        match &mut self.arrivals {
            Arrivals::Poisson { interval_ns } => {
                self.next_ns += *interval_ns * random.sample::<f64, _>(Exp1);
            }
            Arrivals::Turns(turns) => self.next_ns = turns.next_ns(),
        }
    }
}

/// A schedule, the idle sessions, and the due transactions that wait for one.
#[derive(Debug)]
pub struct OpenLoop {
    schedule: Schedule,
    /// What is due from this time on belongs to the number that is asked for.
    counted_from_ns: u64,
    /// So many of that number have not become due yet.
    to_come: u64,
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
    /// A thread's part of a task, by its `own` sessions among all; `None` for a closed loop. In the measured
    /// time `number` transactions become due, at most.
    pub fn of(
        task: &Task,
        own: &Part,
        number: u64,
        idle: VecDeque<usize>,
        random: &mut SmallRng,
    ) -> Option<Self> {
        let Pace::Open {
            rate_per_second,
            spread,
            backlog_max,
        } = task.pace
        else {
            return None;
        };
        let schedule = Schedule::new(rate_per_second, spread, own, task.begin_ns, random);
        let waiting_max = (backlog_max as f64 * own.share()).ceil() as usize;
        Some(Self {
            counted_from_ns: task.measure_ns(),
            to_come: number,
            ..Self::new(schedule, waiting_max, idle)
        })
    }

    /// The next transaction that is due before the end of the load, when nothing is begun any more.
    pub fn next_unbegun(&mut self, end_ns: u64, random: &mut SmallRng) -> Option<Due> {
        self.idle.clear();
        self.next(end_ns.checked_sub(1)?, random)
    }

    pub fn new(schedule: Schedule, backlog_max: usize, idle: VecDeque<usize>) -> Self {
        Self {
            schedule,
            counted_from_ns: 0,
            to_come: u64::MAX,
            backlog: VecDeque::new(),
            backlog_max,
            idle,
        }
    }

    /// When the next transaction is due; never, if no other is to come.
    pub fn due_ns(&self) -> u64 {
        match self.to_come {
            0 => u64::MAX,
            _ => self.schedule.due_ns(),
        }
    }

    /// Whether no transaction is to come, waits, or is under way in one of so many sessions that may begin
    /// others.
    pub fn is_over(&self, sessions: usize) -> bool {
        self.to_come == 0 && self.backlog.is_empty() && self.idle.len() == sessions
    }

    /// The next transaction that is due by `now`; `None` if there is no other.
    pub fn next(&mut self, now: u64, random: &mut SmallRng) -> Option<Due> {
        if self.to_come == 0 {
            return None;
        }
        let due_ns = self.schedule.take(now, random)?;
        self.to_come -= u64::from(due_ns >= self.counted_from_ns);
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

    /// One session that is all of a load.
    fn alone() -> Part {
        Part {
            sessions: 0..1,
            all: 1,
        }
    }

    #[test]
    fn due_transactions_begin_wait_or_are_skipped() {
        let mut random = SmallRng::seed_from_u64(1);
        let schedule = Schedule::new(1e9, Spread::Constant, &alone(), 0, &mut random);
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
        let schedule = Schedule::new(1e9, Spread::Constant, &alone(), 0, &mut random);
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

    /// An open loop from 50 ns on, at a constant rate, with one that may wait.
    fn at_rate(rate_per_second: f64, warm_up_ns: u64) -> Task {
        Task {
            begin_ns: 50,
            warm_up_ns,
            pace: Pace::Open {
                rate_per_second,
                spread: Spread::Constant,
                backlog_max: 1,
            },
            ..Task::NONE
        }
    }

    #[test]
    fn no_more_become_due_than_are_asked_for_beside_the_warm_up() {
        let mut random = SmallRng::seed_from_u64(1);
        let task = at_rate(1e9, 2);
        let mut open = OpenLoop::of(&task, &alone(), 3, [7].into(), &mut random).unwrap();
        let session = 7;
        let begin = Due::Begin {
            session,
            due_ns: 51,
        };
        assert_eq!(open.next(99, &mut random), Some(begin), "in the warm-up");
        let expected = [
            Due::Waits { due_ns: 52 },
            Due::Skipped { due_ns: 53 },
            Due::Skipped { due_ns: 54 },
        ];
        for due in expected {
            assert!(open.due_ns() < u64::MAX);
            assert_eq!(open.next(99, &mut random), Some(due));
        }
        assert_eq!(open.next(99, &mut random), None);
        assert_eq!(open.due_ns(), u64::MAX);
        assert!(!open.is_over(1), "one waits, and one is under way");
        assert_eq!(open.free(7), Some(52));
        assert!(!open.is_over(1));
        assert_eq!(open.free(7), None);
        assert!(open.is_over(1));
        assert!(!open.is_over(2), "another session is not idle");
    }

    /// The due times of all parts of 1000 transactions a second from 50 ns on, in 20 ms.
    fn dues(parts: &[Part]) -> Vec<u64> {
        let task = at_rate(1e3, 0);
        let mut random = SmallRng::seed_from_u64(1);
        let mut dues = Vec::new();
        for own in parts {
            let mut open = OpenLoop::of(&task, own, u64::MAX, [].into(), &mut random).unwrap();
            while let Some(due_ns) = open.schedule.take(20_000_050, &mut random) {
                dues.push(due_ns);
            }
        }
        dues.sort_unstable();
        dues
    }

    #[test]
    fn threads_and_loads_share_a_constant_rate_however_they_are_divided() {
        let expected: Vec<u64> = (1..=20).map(|it| 50 + it * 1_000_000).collect();
        for bounds in [
            vec![0, 1],
            vec![0, 1, 2],
            vec![0, 8, 12, 16],
            vec![0, 3, 5],
            vec![0, 1, 64, 65, 100],
            vec![0, 999_999, 1_000_000],
        ] {
            let all = bounds[bounds.len() - 1];
            let part = |it: &[u64]| Part {
                sessions: it[0]..it[1],
                all,
            };
            let parts: Vec<Part> = bounds.windows(2).map(part).collect();
            assert_eq!(dues(&parts), expected, "{bounds:?}");
        }
    }

    #[test]
    fn the_turns_of_a_part_are_spread_evenly() {
        for all in 1..200 {
            assert_eq!(gcd(step(all), all), 1, "{all}");
            // Of half of the sessions, no more than a few of their turns follow each other.
            let own = Part {
                sessions: 0..all.div_ceil(2),
                all,
            };
            let mut turns = Turns::new(1e9, &own, 0);
            let mut last = turns.next_ns();
            for _ in 0..3 * all {
                let next = turns.next_ns();
                assert!(next - last <= 8.0, "{all}: {}", next - last);
                last = next;
            }
        }
    }

    #[test]
    fn a_constant_rate_does_not_drift() {
        let mut random = SmallRng::seed_from_u64(1);
        let mut schedule = Schedule::new(3.0, Spread::Constant, &alone(), 0, &mut random);
        let dues: Vec<u64> = (0..3_000_000)
            .map(|_| schedule.take(u64::MAX, &mut random).unwrap())
            .collect();
        assert_eq!(dues[0], 333_333_333);
        assert!(dues[2_999_999].abs_diff(1_000_000_000_000_000) < 1_000_000);
    }

    #[test]
    fn poisson_arrivals_have_the_mean_and_spread_of_the_exponential() {
        let mut random = SmallRng::seed_from_u64(2);
        let mut schedule = Schedule::new(1000.0, Spread::Poisson, &alone(), 0, &mut random);
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
        let mut schedule = Schedule::new(1000.0, Spread::Constant, &alone(), 5, &mut random);
        assert_eq!(schedule.take(1_000_004, &mut random), None);
        assert_eq!(schedule.take(1_000_005, &mut random), Some(1_000_005));
        assert_eq!(schedule.due_ns(), 2_000_005);
    }
}
