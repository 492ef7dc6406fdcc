//! **deadline**: two directions, each sorted by sector and in order of arrival.
//!
//! Requests are sent in batches of one direction, upwards by sector. Reads come before writes, but
//! at most `writes_starved` batches of reads pass before waiting writes. Each request has a deadline.
//! It is checked between batches only: if the oldest request has expired, the batch begins with it.
//!
//! Until 2.6.23 a batch ended at the first request that did not follow its predecessor on the
//! disk, so apart from one direction's steady upward sweep it was nearly first come, first served;
//! later kernels let a batch jump.
//!
//! **mq-deadline**, in outline, is the later one, without the kernel's I/O priorities and zones.
//! Requests go to one hardware queue here, so only the name differs.

use super::request_queue::{RequestQueue, Slot};
use super::{Decision, MERGE_LIMIT, Merge, Scheduler};
use crate::request::{Direction, Request};
use crate::time::{MILLISECOND, SECOND, Time};

/// The tunables, by the names that the kernel gives them where it has them.
#[derive(Debug, Clone, Copy)]
pub struct DeadlineTunables {
    pub read_expire: Time,
    pub write_expire: Time,
    /// Requests of a batch.
    pub fifo_batch: u32,
    /// Batches of reads that may pass before waiting writes.
    pub writes_starved: u32,
    pub front_merges: bool,
    /// A batch ends where the next request does not follow the last one on the disk.
    pub contiguous_batches: bool,
}

impl DeadlineTunables {
    /// The tunables of SLES 10.
    pub fn of_2_6_16() -> Self {
        Self {
            contiguous_batches: true,
            ..Self::of_2_6_24()
        }
    }

    /// The tunables of kernels whose batches may jump.
    pub fn of_2_6_24() -> Self {
        Self {
            read_expire: 500 * MILLISECOND,
            write_expire: 5 * SECOND,
            fifo_batch: 16,
            writes_starved: 2,
            front_merges: true,
            contiguous_batches: false,
        }
    }

    fn expire(&self, direction: Direction) -> Time {
        match direction {
            Direction::Read => self.read_expire,
            Direction::Write => self.write_expire,
        }
    }
}

#[derive(Debug)]
pub struct Deadline {
    tunables: DeadlineTunables,
    reads: RequestQueue,
    writes: RequestQueue,
    /// Direction of the last request and where it ended; the sweep goes on from there.
    last: Option<(Direction, u64)>,
    /// Requests of this batch.
    batch: u32,
    /// Batches of reads since writes were served.
    starved: u32,
}

impl Deadline {
    pub fn new(tunables: DeadlineTunables) -> Self {
        Self {
            tunables,
            reads: RequestQueue::default(),
            writes: RequestQueue::default(),
            last: None,
            batch: 0,
            starved: 0,
        }
    }

    /// mq-deadline with its defaults.
    pub fn multi_queue() -> Self {
        Self::new(DeadlineTunables::of_2_6_24())
    }

    fn queue(&self, direction: Direction) -> &RequestQueue {
        match direction {
            Direction::Read => &self.reads,
            Direction::Write => &self.writes,
        }
    }

    fn queue_mut(&mut self, direction: Direction) -> &mut RequestQueue {
        match direction {
            Direction::Read => &mut self.reads,
            Direction::Write => &mut self.writes,
        }
    }

    /// The next request upwards in the direction of the last one.
    fn next_in_sweep(&self) -> Option<(Direction, Slot)> {
        let (direction, end) = self.last?;
        let slot = self.queue(direction).from(end)?;
        Some((direction, slot))
    }

    /// The next request upwards, if the batch may continue.
    fn next_in_batch(&self) -> Option<(Direction, Slot)> {
        let (direction, slot) = self.next_in_sweep()?;
        let follows = Some((direction, self.queue(direction).get(slot).sector)) == self.last;
        let may_jump = !self.tunables.contiguous_batches || follows;
        (self.batch < self.tunables.fifo_batch && may_jump).then_some((direction, slot))
    }

    /// Reads, unless there are none or writes have starved.
    fn choose_direction(&mut self) -> Option<Direction> {
        if self.reads.is_empty() && self.writes.is_empty() {
            return None;
        }
        if !self.reads.is_empty() {
            if self.writes.is_empty() {
                return Some(Direction::Read);
            }
            self.starved += 1;
            if self.starved <= self.tunables.writes_starved {
                return Some(Direction::Read);
            }
        }
        self.starved = 0;
        Some(Direction::Write)
    }

    /// Where a new batch begins: at the oldest request if it has expired, else where the sweep goes on;
    /// after a change of direction, from the start.
    fn start_of_batch(&self, direction: Direction, now: Time) -> Slot {
        let requests = self.queue(direction);
        let oldest = requests
            .oldest()
            .expect("the chosen direction has requests");
        if requests.get(oldest).arrived + self.tunables.expire(direction) <= now {
            return oldest;
        }
        match self.next_in_sweep() {
            Some((same, slot)) if same == direction => slot,
            _ if self.tunables.contiguous_batches => requests.first().unwrap_or(oldest),
            _ => oldest,
        }
    }

    fn serve(&mut self, direction: Direction, slot: Slot) -> Decision {
        let request = self.queue_mut(direction).remove(slot);
        self.batch += 1;
        self.last = Some((direction, request.end()));
        Decision::Serve(request)
    }
}

impl Scheduler for Deadline {
    fn merge(&mut self, request: &Request, _now: Time) -> Option<Merge> {
        let front = self.tunables.front_merges;
        self.queue_mut(request.direction)
            .merge(request, MERGE_LIMIT, front)
    }

    fn add(&mut self, request: Request, _now: Time) {
        self.queue_mut(request.direction).add(request);
    }

    fn dispatch(&mut self, now: Time, _in_flight: usize) -> Decision {
        if let Some((direction, slot)) = self.next_in_batch() {
            return self.serve(direction, slot);
        }
        let Some(direction) = self.choose_direction() else {
            return Decision::Nothing;
        };
        let slot = self.start_of_batch(direction, now);
        self.batch = 0;
        self.serve(direction, slot)
    }

    fn completed(&mut self, _request: &Request, _now: Time) {}

    fn waiting(&self) -> usize {
        self.reads.len() + self.writes.len()
    }
}
