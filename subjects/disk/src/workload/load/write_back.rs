//! Write-back: the kernel's thread that writes old pages out, or when there are too many.

use super::Shared;
use crate::time::Time;
use crate::workload::{Asked, Process, Step};

pub struct WriteBack {
    database: Shared,
}

/// What is written before it looks again (`MAX_WRITEBACK_PAGES`, 1024 pages of 4 KiB).
const PART_SECTORS: u64 = 8 * 1024;

impl WriteBack {
    pub fn new(database: Shared) -> Self {
        Self { database }
    }
}

impl Process for WriteBack {
    fn step(&mut self, now: Time, asked: &mut Asked) -> Step {
        let mut database = self.database.borrow_mut();
        if database.is_over() {
            return Step::End;
        }
        let cache = &mut database.cache;
        let than = match cache.above_background() {
            true => now,
            false => now.saturating_sub(cache.settings.expire),
        };
        if than > 0 {
            cache.write_back(than, PART_SECTORS, &mut asked.ios);
        }
        match asked.ios.is_empty() {
            true => Step::ParkFor(cache.settings.interval),
            false => Step::Wait { below: 1 },
        }
    }
}
