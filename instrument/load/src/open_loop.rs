//! The open loop of one client thread: when requests are due, and which of them wait.

use std::collections::VecDeque;

use rand::rngs::SmallRng;

use crate::arrivals::Schedule;
use crate::plan::Pace;
use crate::task::Task;

/// A schedule, the sessions that are free, and the due times that wait for one.
#[derive(Debug)]
pub struct OpenLoop {
    pub schedule: Schedule,
    backlog: VecDeque<u64>,
    backlog_max: usize,
    /// Those that have been free the longest come first: all get a like share of the requests.
    idle: VecDeque<usize>,
}

/// What becomes of a request that has become due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// This session begins it.
    Begin { session: usize, due_ns: u64 },
    /// It waits for a session.
    Waits,
    /// Too many wait already.
    Skipped,
}

impl OpenLoop {
    /// A thread's part of a task, if that is an open loop; `own` is its share of all sessions.
    pub fn of(
        task: &Task,
        thread: u64,
        own: f64,
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
        // Threads that keep a constant rate together take turns.
        let turn_ns = 1e9 / rate_per_second * thread as f64;
        let first_ns = task.begin_ns + turn_ns as u64;
        let schedule = Schedule::new(rate_per_second * own, spread, first_ns, random);
        let waiting_max = (backlog_max as f64 * own).ceil() as usize;
        Some(Self::new(schedule, waiting_max, idle))
    }

    pub fn new(schedule: Schedule, backlog_max: usize, idle: VecDeque<usize>) -> Self {
        Self {
            schedule,
            backlog: VecDeque::new(),
            backlog_max,
            idle,
        }
    }

    /// The next request that has become due by `now`; none: no other has.
    pub fn next(&mut self, now: u64, random: &mut SmallRng) -> Option<Due> {
        let due_ns = self.schedule.take(now, random)?;
        Some(match self.idle.pop_front() {
            Some(session) => Due::Begin { session, due_ns },
            None if self.backlog.len() < self.backlog_max => {
                self.backlog.push_back(due_ns);
                Due::Waits
            }
            None => Due::Skipped,
        })
    }

    /// A session is free: the due time of what it begins, or none, and it waits.
    pub fn free(&mut self, session: usize) -> Option<u64> {
        let due_ns = self.backlog.pop_front();
        if due_ns.is_none() {
            self.idle.push_back(session);
        }
        due_ns
    }

    /// A session is lost, and begins nothing any more.
    pub fn remove(&mut self, session: usize) {
        self.idle.retain(|it| *it != session);
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::arrivals::Spread;

    #[test]
    fn due_requests_begin_wait_or_are_skipped() {
        let mut random = SmallRng::seed_from_u64(1);
        let schedule = Schedule::new(1e9, Spread::Constant, 0, &mut random);
        let mut open = OpenLoop::new(schedule, 1, [7].into());
        let session = 7;
        let begin = Due::Begin { session, due_ns: 1 };
        assert_eq!(open.next(3, &mut random), Some(begin));
        assert_eq!(open.next(3, &mut random), Some(Due::Waits));
        assert_eq!(open.next(3, &mut random), Some(Due::Skipped));
        assert_eq!(open.next(3, &mut random), None);
        assert_eq!((open.free(7), open.free(7)), (Some(2), None));
        let begin = Due::Begin { session, due_ns: 4 };
        assert_eq!(open.next(4, &mut random), Some(begin));
        assert_eq!(open.free(7), None);
        open.remove(7);
        assert_eq!(open.next(5, &mut random), Some(Due::Waits));
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
}
