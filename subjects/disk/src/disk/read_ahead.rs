//! The track buffer: behind a read the disk reads on, until something else is to be done.

use super::geometry::Geometry;
use crate::request::Request;
use crate::time::Time;

/// What is in the buffer, or on its way there.
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
    /// Reading on behind a request that was done at `end`.
    pub fn behind(request: &Request, end: Time, sectors: u64, of_disk: u64) -> Self {
        Self {
            start: request.sector,
            next: request.end(),
            since: end,
            limit: (request.end() + sectors).min(of_disk),
        }
    }

    /// Something was taken out of the buffer, so there is room to read on, unless reading has
    /// stopped already.
    pub fn extend(&mut self, request: &Request, now: Time, sectors: u64, geometry: &Geometry) {
        if self.reaches(geometry, self.limit) > now {
            let wanted = (request.end() + sectors).min(geometry.sectors());
            self.limit = self.limit.max(wanted);
        }
        self.start = request.sector;
    }

    /// Will the whole request come into the buffer by itself?
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
