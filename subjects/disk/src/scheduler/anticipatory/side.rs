//! The requests that somebody waits for, or the others: each side has an order of its own.

use crate::scheduler::lane::{Lane, Slot};
use crate::time::Time;

/// One of the two sides.
#[derive(Debug)]
pub struct Side {
    pub lane: Lane,
    /// Where the last request of this kind ended.
    pub head: u64,
    /// The order of arrival is looked at once in this time.
    expire: Time,
    pub last_check: Time,
}

impl Side {
    pub fn new(expire: Time) -> Self {
        Self {
            lane: Lane::default(),
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
        let oldest = self.lane.oldest()?;
        (self.lane.get(oldest).arrived + self.expire < now).then_some(oldest)
    }
}
