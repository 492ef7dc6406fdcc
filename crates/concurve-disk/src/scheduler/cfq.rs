//! **cfq** (time-sliced, as in 2.6.16): every process has a queue of its own for what it waits
//! for, and a slice of the disk's time in turn. What nobody waits for shares one queue.
//!
//! - The classes: real time first, then best effort, then idle, which is served only when the
//!   others have been still for a moment, one request at a time.
//! - Within best effort the eight levels take turns as 0; 0, 1; 0, 1, 2; …, so that a higher
//!   level comes round more often, and its slices are longer.
//! - A queue that runs empty within its slice keeps the disk idle for `slice_idle` at most, unless
//!   its process thinks longer than that on average.
//! - Within a queue the nearest request goes next, mostly upwards; once a slice the oldest goes
//!   first if it has waited too long. Up to `quantum` go to the device together.
//!
//! Unlike that kernel, a waiting real-time queue ends the slice of a lower class at once; there it
//! had to wait for the slice's end.

use std::collections::VecDeque;

use super::elevator::Elevator;
use super::lane::Lane;
use super::per_process::QueueIndex;
use super::think_time::ThinkTime;
use super::{Decision, MERGE_LIMIT, Merge, Scheduler};
use crate::request::{Class, Priority, Request};
use crate::time::{MILLISECOND, Time};

const LEVELS: usize = 8;

#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Requests that go to the device together.
    pub quantum: u32,
    pub slice_sync: Time,
    pub slice_async: Time,
    /// Sets how many requests the queue of what nobody waits for may send in a slice.
    pub slice_async_rq: u32,
    pub slice_idle: Time,
    pub fifo_expire_sync: Time,
    pub fifo_expire_async: Time,
    pub elevator: Elevator,
    /// Requests with the device, beyond which a queue that is not waited for sends no more.
    pub max_depth: usize,
    /// How long all others must be still before the idle class is served.
    pub idle_grace: Time,
}

impl Default for Settings {
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

#[derive(Debug)]
struct Queue {
    lane: Lane,
    /// That of a process; else the common one of what nobody waits for.
    is_sync: bool,
    priority: Priority,
    think_time: ThinkTime,
    /// Is it worth idling for?
    idle_window: bool,
    /// Requests of it with the device.
    in_flight: usize,
    /// When it was served last: who waits longest comes first.
    last_served: Time,
    /// Is it in one of the lists of queues that have requests?
    listed: bool,
}

impl Queue {
    fn new(is_sync: bool, priority: Priority) -> Self {
        Self {
            lane: Lane::default(),
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
    /// The order of arrival has been looked at.
    checked_age: bool,
}

#[derive(Debug)]
pub struct Cfq {
    settings: Settings,
    queues: Vec<Queue>,
    index: QueueIndex,
    slice: Option<Slice>,
    real_time: VecDeque<usize>,
    /// The best-effort queues of this turn, and those that wait for theirs by level.
    turn: VecDeque<usize>,
    levels: [VecDeque<usize>; LEVELS],
    idle: VecDeque<usize>,
    /// The turn's levels: it goes on at `level` and ends behind `last_level`.
    level: usize,
    last_level: usize,
    /// What goes to the device next, by sector.
    outgoing: VecDeque<Request>,
    head: u64,
    waiting: usize,
    last_end: Time,
}

impl Cfq {
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            queues: Vec::new(),
            index: QueueIndex::default(),
            slice: None,
            real_time: VecDeque::new(),
            turn: VecDeque::new(),
            levels: Default::default(),
            idle: VecDeque::new(),
            level: 0,
            last_level: 0,
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

    // -- the lists of queues with requests ----------------------------------------------------

    fn list(&mut self, index: usize) {
        let queue = &mut self.queues[index];
        queue.listed = true;
        let Priority { class, level } = queue.priority;
        let list = match class {
            Class::RealTime => &mut self.real_time,
            Class::BestEffort => &mut self.levels[usize::from(level).min(LEVELS - 1)],
            Class::Idle => &mut self.idle,
        };
        let queues = &self.queues;
        let at = list.partition_point(|&it| queues[it].last_served <= queues[index].last_served);
        list.insert(at, index);
    }

    fn unlist(&mut self, index: usize) {
        if !self.queues[index].listed {
            return;
        }
        self.queues[index].listed = false;
        let level = usize::from(self.queues[index].priority.level).min(LEVELS - 1);
        for list in [
            &mut self.real_time,
            &mut self.turn,
            &mut self.levels[level],
            &mut self.idle,
        ] {
            list.retain(|&it| it != index);
        }
    }

    /// The next best-effort queue: from this turn, or from the next level that has some.
    fn next_of_turn(&mut self) -> Option<usize> {
        if self.turn.is_empty() {
            let level = self.next_level()?;
            self.turn = std::mem::take(&mut self.levels[level]);
        }
        self.turn.front().copied()
    }

    /// 0; 0, 1; 0, 1, 2; … 0 to 7; and again. Levels without requests are passed over.
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

    fn class_waits_above(&self, class: Class) -> bool {
        let best_effort = || !self.turn.is_empty() || self.levels.iter().any(|it| !it.is_empty());
        match class {
            Class::RealTime => false,
            Class::BestEffort => !self.real_time.is_empty(),
            Class::Idle => !self.real_time.is_empty() || best_effort(),
        }
    }

    // -- slices -------------------------------------------------------------------------------

    fn slice_length(&self, queue: &Queue) -> Time {
        let base = match queue.is_sync {
            true => self.settings.slice_sync,
            false => self.settings.slice_async,
        };
        let steps = 4 - i64::from(queue.priority.level);
        (base as i64 + base as i64 / 5 * steps) as Time
    }

    /// Requests that a queue which nobody waits for may send in a slice.
    fn most_async(&self, queue: &Queue) -> u32 {
        let base = self.settings.slice_async_rq;
        2 * (base + base * (LEVELS as u32 - 1 - u32::from(queue.priority.level)))
    }

    fn end_slice(&mut self, now: Time) {
        let Some(slice) = self.slice.take() else {
            return;
        };
        self.queues[slice.queue].last_served = now;
        if self.queues[slice.queue].listed {
            self.unlist(slice.queue);
            self.list(slice.queue);
        }
    }

    /// Who sends next: the queue that has the slice, or the next one. `Err`: what to say instead.
    fn choose_queue(&mut self, now: Time) -> Result<usize, Decision> {
        if let Some(decided) = self.keep_slice(now) {
            return decided;
        }
        self.end_slice(now);
        let next = match self.real_time.front().copied() {
            Some(queue) => Some(queue),
            None => self.next_of_turn(),
        };
        let queue = match (next, self.idle.front()) {
            (Some(queue), _) => queue,
            (None, None) => return Err(Decision::Nothing),
            (None, Some(&queue)) => {
                let end = self.last_end + self.settings.idle_grace;
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
        if self.class_waits_above(queue.priority.class) {
            return None;
        }
        let in_time = slice.end.is_none_or(|end| now <= end);
        if !queue.lane.is_empty() {
            // What was waited for is served, even if the slice ended meanwhile.
            let awaited = slice.idle_until.is_some();
            return (in_time || awaited).then_some(Ok(slice.queue));
        }
        if !in_time || !queue.is_sync || !queue.idle_window || self.settings.slice_idle == 0 {
            return None;
        }
        let until = *self
            .slice
            .as_mut()?
            .idle_until
            .get_or_insert(now + self.settings.slice_idle);
        (now < until).then_some(Err(Decision::IdleUntil(until)))
    }

    /// Up to a quantum of a queue's requests, ordered by sector for the device.
    fn send_from(&mut self, index: usize, now: Time) {
        let most = match self.queues[index].priority.class {
            Class::Idle => 1,
            _ => self.settings.quantum,
        };
        let before = self.head;
        for _ in 0..most {
            let Some(request) = self.take_next(index, now) else {
                break;
            };
            self.head = request.end();
            self.outgoing.push_back(request);
        }
        // One sweep: what lies ahead of the head first.
        let by_sweep = |it: &Request| (it.sector < before, it.sector);
        self.outgoing.make_contiguous().sort_by_key(by_sweep);
        self.after_sending(index, now);
    }

    fn take_next(&mut self, index: usize, now: Time) -> Option<Request> {
        let slice = self.slice.as_mut()?;
        let queue = &mut self.queues[index];
        let expire = match queue.is_sync {
            true => self.settings.fifo_expire_sync,
            false => self.settings.fifo_expire_async,
        };
        let late = queue
            .lane
            .oldest()
            .filter(|&it| !slice.checked_age && queue.lane.get(it).arrived + expire < now);
        slice.checked_age |= late.is_some();
        let next = late.or_else(|| self.settings.elevator.nearest(&queue.lane, self.head))?;
        slice.sent += 1;
        slice.idle_until = None;
        queue.in_flight += 1;
        Some(queue.lane.remove(next))
    }

    fn after_sending(&mut self, index: usize, now: Time) {
        if self.queues[index].lane.is_empty() {
            self.unlist(index);
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

impl Scheduler for Cfq {
    fn merge(&mut self, request: &Request, _now: Time) -> Option<Merge> {
        let queue = (*self.index.of(request))?;
        let merge = self.queues[queue].lane.merge(request, MERGE_LIMIT, true)?;
        if merge.bridged.is_some() {
            self.waiting -= 1;
        }
        Some(merge)
    }

    fn add(&mut self, request: Request, now: Time) {
        let index = self.queue_of(&request);
        let most = 2 * self.settings.slice_idle;
        let queue = &mut self.queues[index];
        if request.sync {
            queue.think_time.asked(now, most);
            // A few samples are needed before the mean counts.
            if let Some((weight, mean)) = queue.think_time.mean()
                && weight > 80.0 / 256.0
                && queue.priority.class != Class::Idle
            {
                queue.idle_window = mean <= self.settings.slice_idle as f64;
            }
        }
        queue.lane.add(request);
        self.waiting += 1;
        if !queue.listed {
            self.list(index);
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
            if !self.queues[queue].idle_window && in_flight >= self.settings.max_depth {
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
