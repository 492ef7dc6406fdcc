//! A disk with its queue: requests are merged, scheduled and sent.

use std::collections::VecDeque;

use crate::disk::{Accepted, Disk};
use crate::request::{Direction, Request};
use crate::scheduler::{Decision, Scheduler};
use crate::time::Time;

/// Requests of a direction that may wait in the queue of a device (`nr_requests`); who asks for
/// more has to wait first.
pub const QUEUE_LIMIT: usize = 128;

/// What the simulation has to do for a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The first ticket's request took in the second's.
    Merged { into: u32, gone: u32 },
    /// The arm will be done at this time.
    ArmDone(Time),
    /// A request will be done at this time without the arm.
    Done(Time, Request),
    /// Ask the scheduler again at this time.
    AskAgain(Time),
}

/// A disk with its queue.
pub struct Device {
    pub disk: Disk,
    scheduler: Box<dyn Scheduler>,
    waiting: [usize; 2],
    /// Who could not get into the queue yet.
    outside: VecDeque<Request>,
    in_flight: usize,
    /// The time of the earliest question that is still to come.
    asks_at: Option<Time>,
    pub merged: u64,
    pub sent: u64,
    /// Time during which requests were kept waiting though the disk had nothing to do.
    pub idled: Time,
    idle_since: Option<Time>,
}

impl Device {
    pub fn new(disk: Disk, scheduler: Box<dyn Scheduler>) -> Self {
        Self {
            disk,
            scheduler,
            waiting: [0; 2],
            outside: VecDeque::new(),
            in_flight: 0,
            asks_at: None,
            merged: 0,
            sent: 0,
            idled: 0,
            idle_since: None,
        }
    }

    /// A request comes to the queue; it is not sent before [`Device::run`].
    pub fn submit(&mut self, request: Request, now: Time, effects: &mut Vec<Effect>) {
        if self.waiting[side(&request)] >= QUEUE_LIMIT {
            self.outside.push_back(request);
        } else {
            self.enter(request, now, effects);
        }
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

    /// Send what the scheduler gives and the disk takes.
    pub fn run(&mut self, now: Time, effects: &mut Vec<Effect>) {
        if self.asks_at.is_some_and(|it| it <= now) {
            self.asks_at = None;
        }
        while self.in_flight < self.disk.queue_depth() {
            match self.scheduler.dispatch(now, self.in_flight) {
                Decision::Serve(request) => self.send(request, now, effects),
                Decision::IdleUntil(time) => {
                    self.ask_again(time, effects);
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
        self.let_in(now, effects);
    }

    fn let_in(&mut self, now: Time, effects: &mut Vec<Effect>) {
        while let Some(next) = self.outside.front()
            && self.waiting[side(next)] < QUEUE_LIMIT
        {
            let request = self.outside.pop_front().expect("there is a first");
            self.enter(request, now, effects);
        }
    }

    fn ask_again(&mut self, time: Time, effects: &mut Vec<Effect>) {
        if self.asks_at.is_none_or(|it| time < it) {
            self.asks_at = Some(time);
            effects.push(Effect::AskAgain(time));
        }
    }

    /// A request has been served.
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
