//! A write cache: writes are reported as done when the disk has them in memory.

use crate::request::Request;
use crate::scheduler::lane::Lane;

/// Writes that the platters have not got yet.
#[derive(Debug, Default)]
pub struct WriteCache {
    capacity: u64,
    held: u64,
    lane: Lane,
    /// Where the last one was written; the next one lies behind it.
    sweep: u64,
}

impl WriteCache {
    pub fn new(capacity: u64) -> Self {
        Self {
            capacity,
            ..Self::default()
        }
    }

    /// Take a write in; `false` if there is no room.
    pub fn take_in(&mut self, request: &Request) -> bool {
        let sectors = u64::from(request.sectors);
        if self.held + sectors > self.capacity {
            return false;
        }
        self.held += sectors;
        if self.lane.merge(request, u32::MAX, true).is_none() {
            self.lane.add(*request);
        }
        true
    }

    /// Three quarters full: writing out comes before new commands.
    pub fn is_pressing(&self) -> bool {
        self.held * 4 > self.capacity * 3
    }

    /// What is written out next: one sweep upwards.
    pub fn next_to_write(&mut self) -> Option<Request> {
        let slot = self.lane.from(self.sweep).or_else(|| self.lane.first())?;
        let request = self.lane.remove(slot);
        self.held -= u64::from(request.sectors);
        self.sweep = request.end();
        Some(request)
    }
}
