//! The batches: which side is served, for how long, and how many writes that is.

use crate::request::Request;
use crate::scheduler::request_queue::{RequestQueue, Slot};
use crate::time::{MILLISECOND, Time};

/// The two kinds of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batch {
    Sync,
    Async,
}

impl Batch {
    pub fn of(request: &Request) -> Self {
        if request.sync {
            Self::Sync
        } else {
            Self::Async
        }
    }
}

/// The batch of this moment, and how the old one ends.
#[derive(Debug)]
pub struct Batches {
    pub current: Batch,
    end: Time,
    /// The old batch still drains.
    pub draining: bool,
    /// The time of the sync batch counts from the end of its first request.
    starting: bool,
    /// Writes that a batch may have, and that this one still has.
    write_count: u32,
    writes_left: u32,
    /// The batch of writes had nothing to compete with, so its time says nothing.
    uncontended: bool,
    read_expire: Time,
    write_expire: Time,
}

impl Batches {
    /// Batches of reads and of writes that take so long each.
    pub fn new(read_expire: Time, write_expire: Time) -> Self {
        Self {
            current: Batch::Sync,
            end: read_expire,
            draining: false,
            starting: false,
            write_count: ((write_expire / MILLISECOND / 40) as u32).max(2),
            writes_left: 0,
            uncontended: false,
            read_expire,
            write_expire,
        }
    }

    pub fn expired(&self, now: Time) -> bool {
        if self.draining || self.starting {
            return false;
        }
        now > self.end || (self.current == Batch::Async && self.writes_left == 0)
    }

    pub fn start(&mut self, batch: Batch) {
        if self.current != batch {
            self.draining = true;
            self.starting = false;
        }
        self.current = batch;
        if batch == Batch::Async {
            self.writes_left = self.write_count;
            self.uncontended = false;
        }
    }

    /// The old batch has drained: the time of the new one begins, or its first request does.
    pub fn drained(&mut self, now: Time) {
        self.draining = false;
        match self.current {
            Batch::Sync => self.starting = true,
            Batch::Async => self.end = now + self.write_expire,
        }
    }

    /// Reads that have the disk for themselves go on.
    pub fn prolong(&mut self, now: Time) {
        self.end = now + self.read_expire;
    }

    /// A write is sent.
    pub fn count_write(&mut self) {
        self.writes_left = self.writes_left.saturating_sub(1);
    }

    /// What waits now: a batch of writes that ends without any reads had no competition.
    pub fn note_waiting(&mut self, reads: bool, writes: bool) {
        if self.current == Batch::Async && !reads && (self.writes_left == 0 || !writes) {
            self.uncontended = true;
        }
    }

    /// A request has ended; the first of a batch says how long the batch before it took.
    pub fn ended(&mut self, request: &Request, now: Time) {
        if self.starting && self.current == Batch::of(request) {
            self.tune_writes(now);
            self.end = now + self.read_expire;
            self.starting = false;
        }
    }

    /// More writes a batch if they took less than their time, fewer if they took more.
    fn tune_writes(&mut self, now: Time) {
        let meant = self.write_expire as i64;
        let took = (now as i64 - self.end as i64 + meant).max(0);
        if took > meant && !self.uncontended {
            if took > 3 * meant {
                self.write_count /= 2;
            } else {
                self.write_count -= 1;
            }
        } else if took < meant && self.writes_left == 0 {
            if meant > 3 * took {
                self.write_count *= 2;
            } else {
                self.write_count += 1;
            }
        }
        self.write_count = self.write_count.clamp(1, 1 << 16);
    }
}

/// One of the two sides.
#[derive(Debug)]
pub struct BatchQueue {
    pub requests: RequestQueue,
    /// Where the last request of this kind ended.
    pub head: u64,
    /// The order of arrival is looked at once in this time.
    expire: Time,
    pub last_check: Time,
}

impl BatchQueue {
    pub fn new(expire: Time) -> Self {
        Self {
            requests: RequestQueue::default(),
            head: 0,
            expire,
            last_check: 0,
        }
    }

    /// Has the oldest request waited too long? Asked too soon again, the answer is no: many
    /// requests that have expired would otherwise make it seek to and fro.
    pub fn oldest_expired(&mut self, now: Time) -> Option<Slot> {
        if now - self.last_check < self.expire {
            return None;
        }
        self.last_check = now;
        let oldest = self.requests.oldest()?;
        (self.requests.get(oldest).arrived + self.expire < now).then_some(oldest)
    }
}
