//! The queues of processes, and whose turn it is: the queues that have requests, by class and
//! level.

use std::collections::VecDeque;

use crate::request::{Class, Priority};
use crate::scheduler::per_process::ThinkTime;
use crate::scheduler::request_queue::RequestQueue;
use crate::time::Time;

/// Levels within the best-effort class.
pub const LEVELS: usize = 8;

/// The synchronous requests of one process, or all asynchronous ones.
#[derive(Debug)]
pub struct Queue {
    pub requests: RequestQueue,
    /// Whether it is the queue of a process; else it is the common asynchronous one.
    pub is_sync: bool,
    pub priority: Priority,
    pub think_time: ThinkTime,
    /// Whether the disk may be kept idle for it.
    pub idle_window: bool,
    /// Requests of it with the device.
    pub in_flight: usize,
    /// When it was served last: the queue that waits longest comes first.
    pub last_served: Time,
    /// Whether it is in one of the lists of queues that have requests.
    pub listed: bool,
}

impl Queue {
    pub fn new(is_sync: bool, priority: Priority) -> Self {
        Self {
            requests: RequestQueue::default(),
            is_sync,
            priority,
            think_time: ThinkTime::default(),
            idle_window: is_sync && priority.class != Class::Idle,
            in_flight: 0,
            last_served: 0,
            listed: false,
        }
    }
}

/// The places of queues that have requests.
#[derive(Debug, Default)]
pub struct Turns {
    real_time: VecDeque<usize>,
    /// The best-effort queues of this turn, and those that wait for theirs by level.
    turn: VecDeque<usize>,
    levels: [VecDeque<usize>; LEVELS],
    idle: VecDeque<usize>,
    /// The turn's levels: it goes on at `level` and ends behind `last_level`.
    level: usize,
    last_level: usize,
}

impl Turns {
    /// Puts a queue in its list: the one that was served longest ago comes first.
    pub fn add(&mut self, index: usize, queues: &mut [Queue]) {
        let queue = &mut queues[index];
        queue.listed = true;
        let Priority { class, level } = queue.priority;
        let list = match class {
            Class::RealTime => &mut self.real_time,
            Class::BestEffort => &mut self.levels[usize::from(level).min(LEVELS - 1)],
            Class::Idle => &mut self.idle,
        };
        let at = list.partition_point(|&it| queues[it].last_served <= queues[index].last_served);
        list.insert(at, index);
    }

    /// Takes a queue out of its list, if it is in one.
    pub fn remove(&mut self, index: usize, queues: &mut [Queue]) {
        if !queues[index].listed {
            return;
        }
        queues[index].listed = false;
        let level = usize::from(queues[index].priority.level).min(LEVELS - 1);
        for list in [
            &mut self.real_time,
            &mut self.turn,
            &mut self.levels[level],
            &mut self.idle,
        ] {
            list.retain(|&it| it != index);
        }
    }

    /// The next queue of the real-time and best-effort classes.
    pub fn next_ahead_of_idle(&mut self) -> Option<usize> {
        match self.real_time.front().copied() {
            Some(queue) => Some(queue),
            None => self.next_best_effort(),
        }
    }

    /// The next queue of the idle class.
    pub fn next_idle(&self) -> Option<usize> {
        self.idle.front().copied()
    }

    /// The next best-effort queue: from this turn, or from the next level that has some.
    fn next_best_effort(&mut self) -> Option<usize> {
        if self.turn.is_empty() {
            let level = self.next_level()?;
            self.turn = std::mem::take(&mut self.levels[level]);
        }
        self.turn.front().copied()
    }

    /// 0; 0, 1; 0, 1, 2; … 0 to 7; and again. Levels without requests are skipped.
    fn next_level(&mut self) -> Option<usize> {
        if self.levels.iter().all(VecDeque::is_empty) {
            return None;
        }
        loop {
            while self.level <= self.last_level {
                let level = self.level;
                self.level += 1;
                if !self.levels[level].is_empty() {
                    return Some(level);
                }
            }
            self.level = 0;
            self.last_level = (self.last_level + 1) % LEVELS;
        }
    }

    /// Whether a higher class has requests.
    pub fn any_above(&self, class: Class) -> bool {
        let best_effort = || !self.turn.is_empty() || self.levels.iter().any(|it| !it.is_empty());
        match class {
            Class::RealTime => false,
            Class::BestEffort => !self.real_time.is_empty(),
            Class::Idle => !self.real_time.is_empty() || best_effort(),
        }
    }
}
