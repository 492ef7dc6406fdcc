//! A disk with its request queue: requests are merged, scheduled and sent.

use std::collections::VecDeque;

use crate::disk::{Accepted, Disk};
use crate::request::{Direction, Request};
use crate::scheduler::{Admission, Decision, Scheduler};
use crate::time::Time;

/// Requests of a direction that may wait in the queue of a device (`nr_requests`); further ones are
/// blocked until there are fewer.
pub const QUEUE_LIMIT: usize = 128;

/// An event that the simulation must handle for a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The second ticket's request was merged into the first's.
    Merged { into: u32, gone: u32 },
    /// The arm will be done at this time.
    ArmDone(Time),
    /// A request will be done at this time without the arm.
    Done(Time, Request),
    /// The scheduler is to be called again at this time.
    QueryAt(Time),
}

/// A disk with its queue.
pub struct Device {
    pub disk: Disk,
    scheduler: Box<dyn Scheduler>,
    waiting: [usize; 2],
    /// Requests that wait until they may enter the queue.
    blocked: VecDeque<Request>,
    /// Some of them wait for a request of their own process to end.
    blocked_by_process: bool,
    in_flight: usize,
    /// When the scheduler will be called again, if that is planned.
    next_query: Option<Time>,
    pub merged: u64,
    pub sent: u64,
    /// Time during which requests waited although the disk was idle.
    pub idled: Time,
    idle_since: Option<Time>,
}

impl Device {
    pub fn new(disk: Disk, scheduler: Box<dyn Scheduler>) -> Self {
        Self {
            disk,
            scheduler,
            waiting: [0; 2],
            blocked: VecDeque::new(),
            blocked_by_process: false,
            in_flight: 0,
            next_query: None,
            merged: 0,
            sent: 0,
            idled: 0,
            idle_since: None,
        }
    }

    /// Adds a request to the queue; it is not sent before [`Device::run`].
    pub fn submit(&mut self, request: Request, now: Time, effects: &mut Vec<Effect>) {
        let admission = self.admission(&request);
        if admission == Admission::Yes {
            return self.enter(request, now, effects);
        }
        self.blocked_by_process |= admission == Admission::NotThisProcess;
        self.blocked.push_back(request);
    }

    fn admission(&mut self, request: &Request) -> Admission {
        let full = self.waiting[side(request)] >= QUEUE_LIMIT;
        self.scheduler.admission(request, full)
    }

    fn enter(&mut self, request: Request, now: Time, effects: &mut Vec<Effect>) {
        let Some(merge) = self.scheduler.merge(&request, now) else {
            self.waiting[side(&request)] += 1;
            return self.scheduler.add(request, now);
        };
        let into = merge.into;
        self.merged += 1;
        let gone = request.ticket;
        effects.push(Effect::Merged { into, gone });
        if let Some(neighbour) = merge.bridged {
            self.merged += 1;
            self.waiting[side(&neighbour)] -= 1;
            let gone = neighbour.ticket;
            effects.push(Effect::Merged { into, gone });
        }
    }

    /// Sends requests as the scheduler decides, up to the disk's queue depth.
    pub fn run(&mut self, now: Time, effects: &mut Vec<Effect>) {
        if self.next_query.is_some_and(|it| it <= now) {
            self.next_query = None;
        }
        if std::mem::take(&mut self.blocked_by_process) {
            self.admit_blocked(now, effects);
        }
        while self.in_flight < self.disk.queue_depth() {
            match self.scheduler.dispatch(now, self.in_flight) {
                Decision::Serve(request) => self.send(request, now, effects),
                Decision::IdleUntil(time) => {
                    self.query_at(time, effects);
                    break;
                }
                Decision::Nothing => break,
            }
        }
        if let Some(end) = self.disk.start(now) {
            effects.push(Effect::ArmDone(end));
        }
        self.account_idling(now);
    }

    fn send(&mut self, request: Request, now: Time, effects: &mut Vec<Effect>) {
        self.waiting[side(&request)] -= 1;
        self.sent += 1;
        self.in_flight += 1;
        if let Accepted::Cached(time) = self.disk.accept(request, now) {
            effects.push(Effect::Done(time, request));
        }
        self.admit_blocked(now, effects);
    }

    /// Lets requests enter in the order in which they came, each as soon as it may.
    fn admit_blocked(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let mut at = 0;
        while let Some(&next) = self.blocked.get(at) {
            match self.admission(&next) {
                Admission::Yes => {
                    self.blocked.remove(at);
                    self.enter(next, now, effects);
                }
                Admission::NotThisProcess => {
                    self.blocked_by_process = true;
                    at += 1;
                }
                Admission::Full => break,
            }
        }
    }

    fn query_at(&mut self, time: Time, effects: &mut Vec<Effect>) {
        if self.next_query.is_none_or(|it| time < it) {
            self.next_query = Some(time);
            effects.push(Effect::QueryAt(time));
        }
    }

    /// Records that a request is done.
    pub fn completed(&mut self, request: &Request, now: Time) {
        self.in_flight -= 1;
        self.scheduler.completed(request, now);
    }

    fn account_idling(&mut self, now: Time) {
        let idles = self.in_flight == 0 && self.scheduler.waiting() > 0;
        match (idles, self.idle_since) {
            (true, None) => self.idle_since = Some(now),
            (false, Some(since)) => {
                self.idled += now - since;
                self.idle_since = None;
            }
            _ => {}
        }
    }
}

fn side(request: &Request) -> usize {
    match request.direction {
        Direction::Read => 0,
        Direction::Write => 1,
    }
}
