//! A closing job: reads parts of what was loaded, here and there.

use super::Shared;
use crate::time::{MILLISECOND, Time};
use crate::workload::{Asked, Io, Process, Step};

/// What it reads in one place: 64 KiB, and how long it computes for that.
const PART_SECTORS: u64 = 128;
const COMPUTES: Time = MILLISECOND;

pub struct ClosingJob {
    database: Shared,
    /// Sectors that are still to be read; `None` before it begins.
    left: Option<u64>,
    has_read: bool,
}

impl ClosingJob {
    pub fn new(database: Shared) -> Self {
        Self {
            database,
            left: None,
            has_read: false,
        }
    }

    fn share(&self) -> u64 {
        let database = self.database.borrow();
        let all = database.used() as f64 * database.assumptions.closing_share;
        (all / database.places.closing.len() as f64) as u64
    }
}

impl Process for ClosingJob {
    fn step(&mut self, now: Time, asked: &mut Asked) -> Step {
        // Parked at the start; it goes on when all is loaded.
        if now == 0 {
            return Step::Park;
        }
        if std::mem::take(&mut self.has_read) {
            return Step::Sleep(COMPUTES);
        }
        let left = self.left.unwrap_or_else(|| self.share());
        if left == 0 {
            self.database.borrow_mut().closing_done(asked);
            return Step::End;
        }
        self.left = Some(left.saturating_sub(PART_SECTORS));
        self.has_read = true;
        let at = self.database.borrow_mut().any_used(PART_SECTORS);
        asked.ios.push(Io::read(at, PART_SECTORS as u32));
        Step::Wait { below: 1 }
    }
}
