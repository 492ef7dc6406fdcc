//! **cfq** (time-sliced, as in 2.6.16): every process has a queue for its synchronous requests, and
//! the queues get slices of the disk's time in turn. Asynchronous requests share one queue.
//!
//! - The classes: real time first, then best effort, then idle, which is served one request at a
//!   time, and only when the others had no requests for a grace period.
//! - Within best effort the eight levels take turns as 0; 0, 1; 0, 1, 2; …, so that a higher
//!   level is served more often, and its slices are longer.
//! - A queue that runs empty within its slice keeps the disk idle for `slice_idle` at most, unless
//!   its process thinks longer than that on average.
//! - Within a queue the nearest request goes next, mostly upwards; once a slice the oldest goes
//!   first if it has waited too long. Up to `quantum` go to the device together.
//!
//! Unlike that kernel, a waiting real-time queue ends the slice of a lower class at once; there it
//! had to wait for the slice's end.

mod turns;

use std::collections::VecDeque;

use super::per_process::QueueIndex;
use super::request_queue::Elevator;
use super::{Decision, MERGE_LIMIT, Merge, Scheduler};
use crate::request::{Class, Request};
use crate::time::{MILLISECOND, Time};
use turns::{LEVELS, Queue, Turns};

/// The tunables, by the names that the kernel gives them where it has them.
#[derive(Debug, Clone, Copy)]
pub struct CfqTunables {
    /// Requests that go to the device together.
    pub quantum: u32,
    pub slice_sync: Time,
    pub slice_async: Time,
    /// Determines how many requests the asynchronous queue may send in a slice.
    pub slice_async_rq: u32,
    pub slice_idle: Time,
    pub fifo_expire_sync: Time,
    pub fifo_expire_async: Time,
    pub elevator: Elevator,
    /// Requests with the device at which a queue without an idle window sends no more.
    pub max_depth: usize,
    /// How long the other classes must be without requests before the idle class is served.
    pub idle_grace: Time,
}

impl Default for CfqTunables {
    fn default() -> Self {
        Self {
            quantum: 4,
            slice_sync: 100 * MILLISECOND,
            slice_async: 40 * MILLISECOND,
            slice_async_rq: 2,
            slice_idle: 10 * MILLISECOND,
            fifo_expire_sync: 125 * MILLISECOND,
            fifo_expire_async: 250 * MILLISECOND,
            elevator: Elevator {
                back_max: 16 * 1024 * 2,
                back_penalty: 2,
            },
            max_depth: 2,
            idle_grace: 100 * MILLISECOND,
        }
    }
}

/// The queue that has the disk.
#[derive(Debug)]
struct Slice {
    queue: usize,
    /// Set when it sends its first request.
    end: Option<Time>,
    /// Requests that it has sent.
    sent: u32,
    /// The disk is kept idle for it until then.
    idle_until: Option<Time>,
    /// Whether the oldest request has been checked for expiry.
    checked_age: bool,
}

#[derive(Debug)]
pub struct Cfq {
    tunables: CfqTunables,
    queues: Vec<Queue>,
    index: QueueIndex,
    slice: Option<Slice>,
    turns: Turns,
    /// The requests that go to the device next, by sector.
    outgoing: VecDeque<Request>,
    head: u64,
    waiting: usize,
    last_end: Time,
}

impl Cfq {
    pub fn new(tunables: CfqTunables) -> Self {
        Self {
            tunables,
            queues: Vec::new(),
            index: QueueIndex::default(),
            slice: None,
            turns: Turns::default(),
            outgoing: VecDeque::new(),
            head: 0,
            waiting: 0,
            last_end: 0,
        }
    }

    fn queue_of(&mut self, request: &Request) -> usize {
        *self.index.of(request).get_or_insert_with(|| {
            self.queues.push(Queue::new(request.sync, request.priority));
            self.queues.len() - 1
        })
    }

    /// Takes up to a quantum of requests from a queue, ordered by sector for the device.
    fn send_from(&mut self, index: usize, now: Time) {
        let most = match self.queues[index].priority.class {
            Class::Idle => 1,
            _ => self.tunables.quantum,
        };
        let before = self.head;
        for _ in 0..most {
            let Some(request) = self.take_next(index, now) else {
                break;
            };
            self.head = request.end();
            self.outgoing.push_back(request);
        }
        // One sweep: requests ahead of the head first.
        let by_sweep = |it: &Request| (it.sector < before, it.sector);
        self.outgoing.make_contiguous().sort_by_key(by_sweep);
        self.after_sending(index, now);
    }

    fn take_next(&mut self, index: usize, now: Time) -> Option<Request> {
        let slice = self.slice.as_mut()?;
        let queue = &mut self.queues[index];
        let expire = match queue.is_sync {
            true => self.tunables.fifo_expire_sync,
            false => self.tunables.fifo_expire_async,
        };
        let late = queue
            .requests
            .oldest()
            .filter(|&it| !slice.checked_age && queue.requests.get(it).arrived + expire < now);
        slice.checked_age |= late.is_some();
        let next = late.or_else(|| self.tunables.elevator.nearest(&queue.requests, self.head))?;
        slice.sent += 1;
        slice.idle_until = None;
        queue.in_flight += 1;
        Some(queue.requests.remove(next))
    }

    fn after_sending(&mut self, index: usize, now: Time) {
        if self.queues[index].requests.is_empty() {
            self.turns.remove(index, &mut self.queues);
        }
        let queue = &self.queues[index];
        let (length, most) = (self.slice_length(queue), self.most_async(queue));
        let (is_sync, class) = (queue.is_sync, queue.priority.class);
        let Some(slice) = self.slice.as_mut() else {
            return;
        };
        slice.end.get_or_insert(now + length);
        if class == Class::Idle || (!is_sync && slice.sent >= most) {
            self.end_slice(now);
        }
    }
}

/// Slices: which queue has the disk, for how long, and when the disk is kept idle for it.
impl Cfq {
    fn slice_length(&self, queue: &Queue) -> Time {
        let base = match queue.is_sync {
            true => self.tunables.slice_sync,
            false => self.tunables.slice_async,
        };
        let steps = 4 - i64::from(queue.priority.level);
        (base as i64 + base as i64 / 5 * steps) as Time
    }

    /// Requests that the asynchronous queue may send in a slice.
    fn most_async(&self, queue: &Queue) -> u32 {
        let base = self.tunables.slice_async_rq;
        2 * (base + base * (LEVELS as u32 - 1 - u32::from(queue.priority.level)))
    }

    fn end_slice(&mut self, now: Time) {
        let Some(slice) = self.slice.take() else {
            return;
        };
        self.queues[slice.queue].last_served = now;
        if self.queues[slice.queue].listed {
            self.turns.remove(slice.queue, &mut self.queues);
            self.turns.add(slice.queue, &mut self.queues);
        }
    }

    /// The queue that sends next: the one that has the slice, or the next one. `Err`: the decision if
    /// there is none.
    fn choose_queue(&mut self, now: Time) -> Result<usize, Decision> {
        if let Some(decided) = self.keep_slice(now) {
            return decided;
        }
        self.end_slice(now);
        let queue = match (self.turns.next_ahead_of_idle(), self.turns.next_idle()) {
            (Some(queue), _) => queue,
            (None, None) => return Err(Decision::Nothing),
            (None, Some(queue)) => {
                let end = self.last_end + self.tunables.idle_grace;
                if now < end {
                    return Err(Decision::IdleUntil(end));
                }
                queue
            }
        };
        self.slice = Some(Slice {
            queue,
            end: None,
            sent: 0,
            idle_until: None,
            checked_age: false,
        });
        Ok(queue)
    }

    /// `None`: the slice is over, or there is none.
    fn keep_slice(&mut self, now: Time) -> Option<Result<usize, Decision>> {
        let slice = self.slice.as_ref()?;
        let queue = &self.queues[slice.queue];
        if self.turns.any_above(queue.priority.class) {
            return None;
        }
        let in_time = slice.end.is_none_or(|end| now <= end);
        if !queue.requests.is_empty() {
            // The request that the disk was kept idle for is served, even if the slice has ended.
            let awaited = slice.idle_until.is_some();
            return (in_time || awaited).then_some(Ok(slice.queue));
        }
        if !in_time || !queue.is_sync || !queue.idle_window || self.tunables.slice_idle == 0 {
            return None;
        }
        let until = *self
            .slice
            .as_mut()?
            .idle_until
            .get_or_insert(now + self.tunables.slice_idle);
        (now < until).then_some(Err(Decision::IdleUntil(until)))
    }
}

impl Scheduler for Cfq {
    fn merge(&mut self, request: &Request, _now: Time) -> Option<Merge> {
        let queue = (*self.index.of(request))?;
        let merge = self.queues[queue]
            .requests
            .merge(request, MERGE_LIMIT, true)?;
        if merge.bridged.is_some() {
            self.waiting -= 1;
        }
        Some(merge)
    }

    fn add(&mut self, request: Request, now: Time) {
        let index = self.queue_of(&request);
        let most = 2 * self.tunables.slice_idle;
        let queue = &mut self.queues[index];
        if request.sync {
            queue.think_time.asked(now, most);
            // A few samples are needed before the mean counts.
            if let Some((weight, mean)) = queue.think_time.mean()
                && weight > 80.0 / 256.0
                && queue.priority.class != Class::Idle
            {
                queue.idle_window = mean <= self.tunables.slice_idle as f64;
            }
        }
        queue.requests.add(request);
        self.waiting += 1;
        if !queue.listed {
            self.turns.add(index, &mut self.queues);
        }
    }

    fn dispatch(&mut self, now: Time, in_flight: usize) -> Decision {
        if self.outgoing.is_empty() {
            if self.waiting == 0 {
                return Decision::Nothing;
            }
            let queue = match self.choose_queue(now) {
                Ok(queue) => queue,
                Err(decision) => return decision,
            };
            if !self.queues[queue].idle_window && in_flight >= self.tunables.max_depth {
                return Decision::Nothing;
            }
            self.send_from(queue, now);
        }
        let request = self.outgoing.pop_front().expect("a chosen queue sends");
        self.waiting -= 1;
        Decision::Serve(request)
    }

    fn completed(&mut self, request: &Request, now: Time) {
        let index = self.queue_of(request);
        let queue = &mut self.queues[index];
        queue.in_flight -= 1;
        queue.last_served = now;
        if request.sync {
            queue.think_time.ended(now);
        }
        if queue.priority.class != Class::Idle {
            self.last_end = now;
        }
    }

    fn waiting(&self) -> usize {
        self.waiting
    }
}
