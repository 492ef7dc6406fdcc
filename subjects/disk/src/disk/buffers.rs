//! The disk's memory: a write cache, and a track buffer that reads ahead.

use super::geometry::Geometry;
use crate::request::Request;
use crate::scheduler::request_queue::RequestQueue;
use crate::time::Time;

/// Writes that were reported as done and are not on the platters yet.
#[derive(Debug, Default)]
pub struct WriteCache {
    capacity: u64,
    held: u64,
    requests: RequestQueue,
    /// Where the last one ended; the sweep continues there.
    sweep: u64,
}

impl WriteCache {
    pub fn new(capacity: u64) -> Self {
        Self {
            capacity,
            ..Self::default()
        }
    }

    /// Takes a write; `false` if there is not enough capacity left.
    pub fn take_in(&mut self, request: &Request) -> bool {
        let sectors = u64::from(request.sectors);
        if self.held + sectors > self.capacity {
            return false;
        }
        self.held += sectors;
        if self.requests.merge(request, u32::MAX, true).is_none() {
            self.requests.add(*request);
        }
        true
    }

    /// Whether it is more than three quarters full: then writing out comes before new commands.
    pub fn is_pressing(&self) -> bool {
        self.held * 4 > self.capacity * 3
    }

    /// The next request to write out, in upward sweeps.
    pub fn next_to_write(&mut self) -> Option<Request> {
        let slot = self
            .requests
            .from(self.sweep)
            .or_else(|| self.requests.first())?;
        let request = self.requests.remove(slot);
        self.held -= u64::from(request.sectors);
        self.sweep = request.end();
        Some(request)
    }
}

/// The contents of the read-ahead buffer, including sectors that are still to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadAhead {
    /// The first sector in the buffer.
    start: u64,
    /// The sector that came under the head at `since`; reading goes on from there.
    next: u64,
    since: Time,
    /// Reading on ends here.
    limit: u64,
}

impl ReadAhead {
    /// Reading on after a request that was done at `end`.
    pub fn behind(request: &Request, end: Time, sectors: u64, of_disk: u64) -> Self {
        Self {
            start: request.sector,
            next: request.end(),
            since: end,
            limit: (request.end() + sectors).min(of_disk),
        }
    }

    /// A request was served from the buffer, which frees space to read on, unless reading has
    /// stopped already.
    pub fn extend(&mut self, request: &Request, now: Time, sectors: u64, geometry: &Geometry) {
        if self.reaches(geometry, self.limit) > now {
            let wanted = (request.end() + sectors).min(geometry.sectors());
            self.limit = self.limit.max(wanted);
        }
        self.start = request.sector;
    }

    /// Whether the whole request is or will be in the buffer.
    pub fn holds(&self, request: &Request) -> bool {
        request.sector >= self.start && request.end() <= self.limit
    }

    /// When the sectors before this one are in the buffer.
    pub fn reaches(&self, geometry: &Geometry, sector: u64) -> Time {
        if sector <= self.next {
            return self.since;
        }
        let place = geometry.place(self.next);
        self.since + geometry.transfer(&place, sector - self.next)
    }
}
