//! The batches: which kind is served, for how long, and how many writes that is.

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

/// The current batch, and how the old one ends.
#[derive(Debug)]
pub struct Batches {
    pub current: Batch,
    end: Time,
    /// Whether the old batch still drains.
    pub draining: bool,
    /// The time of the sync batch counts from the end of its first request.
    starting: bool,
    /// Writes that a batch may have, and that this one still has.
    write_count: u32,
    writes_left: u32,
    /// The batch of writes had no competition, so its time is not used for tuning.
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

    /// The old batch has drained: the time of the new one begins now, or with its first request.
    pub fn drained(&mut self, now: Time) {
        self.draining = false;
        match self.current {
            Batch::Sync => self.starting = true,
            Batch::Async => self.end = now + self.write_expire,
        }
    }

    /// Prolongs a batch of reads that has no competition.
    pub fn prolong(&mut self, now: Time) {
        self.end = now + self.read_expire;
    }

    /// Counts a write that is sent.
    pub fn count_write(&mut self) {
        self.writes_left = self.writes_left.saturating_sub(1);
    }

    /// Notes which kinds wait: a batch of writes that ends without any reads had no competition.
    pub fn note_waiting(&mut self, reads: bool, writes: bool) {
        if self.current == Batch::Async && !reads && (self.writes_left == 0 || !writes) {
            self.uncontended = true;
        }
    }

    /// A request has ended; the end of a batch's first request says how long the old batch took.
    pub fn ended(&mut self, request: &Request, now: Time) {
        if self.starting && self.current == Batch::of(request) {
            self.tune_writes(now);
            self.end = now + self.read_expire;
            self.starting = false;
        }
    }

    /// Adapts the number of writes a batch to the time that the last ones took.
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

/// The waiting requests of one kind of batch.
#[derive(Debug)]
pub struct BatchQueue {
    pub requests: RequestQueue,
    /// Where the last request of this kind ended.
    pub head: u64,
    /// How often the oldest request is checked for expiry, and after what time it expires.
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

    /// The oldest request if it has expired. At most one is returned in each `expire`: many expired
    /// requests would otherwise make the disk seek to and fro.
    pub fn oldest_expired(&mut self, now: Time) -> Option<Slot> {
        if now - self.last_check < self.expire {
            return None;
        }
        self.last_check = now;
        let oldest = self.requests.oldest()?;
        (self.requests.get(oldest).arrived + self.expire < now).then_some(oldest)
    }
}
