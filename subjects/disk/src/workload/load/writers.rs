//! The processes that write changed pages: the database's writers at savepoints, and the kernel's
//! write-back thread.

use super::database::{Changed, Shared};
use super::plan::Writing;
use crate::request::Io;
use crate::time::Time;
use crate::workload::{Actions, Process, Step};

#[derive(Debug)]
enum State {
    Start,
    /// Parked; it is woken when there is a savepoint to write, or the load is over.
    Idle,
    /// Into the page cache, a part at a time.
    Writing(Changed),
    /// With direct I/O, bypassing the page cache.
    Direct(Changed),
    Done,
}

/// A writer of the database: writes the changed pages of one data volume at each savepoint.
pub struct Writer {
    database: Shared,
    volume: usize,
    state: State,
}

/// Sectors that are written to the page cache between two checks of its limits.
const CACHED_SECTORS: u64 = 16 * 1024;
/// Sectors of a direct request.
const DIRECT_SECTORS: u64 = 1024;

impl Writer {
    pub fn new(database: Shared, volume: usize) -> Self {
        Self {
            database,
            volume,
            state: State::Start,
        }
    }

    fn begin(&mut self) -> Step {
        let mut database = self.database.borrow_mut();
        if database.is_over() {
            return Step::End;
        }
        let mut changed = database.take_changed(self.volume);
        // Taken from the end, so the lowest sector goes first.
        changed.reverse();
        self.state = match database.assumptions.writing {
            Writing::Cached => State::Writing(changed),
            Writing::Direct => State::Direct(changed),
        };
        Step::Wait { below: 1 }
    }

    /// Writes a part to the page cache; above the limit, writes out pages itself. At the end,
    /// `fsync`.
    fn write(&mut self, now: Time, mut changed: Changed, actions: &mut Actions) -> Step {
        let mut database = self.database.borrow_mut();
        let mut part = 0;
        while part < CACHED_SECTORS
            && let Some((sector, sectors)) = changed.pop()
        {
            database.cache.write(self.volume, sector, sectors, now);
            part += sectors;
        }
        if changed.is_empty() {
            database.cache.flush(self.volume, &mut actions.ios);
            self.state = State::Done;
            return Step::Wait { below: 1 };
        }
        if database.cache.above_background() {
            actions.wake.push(database.places.write_back);
        }
        if database.cache.above_limit() {
            database
                .cache
                .write_back(now, CACHED_SECTORS, &mut actions.ios);
        }
        self.state = State::Writing(changed);
        Step::Wait { below: 1 }
    }

    fn write_direct(&mut self, mut changed: Changed, actions: &mut Actions) -> Step {
        let Some((sector, sectors)) = changed.pop() else {
            self.state = State::Done;
            return Step::Wait { below: 1 };
        };
        let now = sectors.min(DIRECT_SECTORS);
        actions.ios.push(Io::write(sector, now as u32, true));
        if now < sectors {
            changed.push((sector + now, sectors - now));
        }
        self.state = State::Direct(changed);
        let below = self.database.borrow().assumptions.direct_depth;
        Step::Wait { below }
    }
}

impl Process for Writer {
    fn step(&mut self, now: Time, actions: &mut Actions) -> Step {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Start => Step::Park,
            State::Idle => self.begin(),
            State::Writing(changed) => self.write(now, changed, actions),
            State::Direct(changed) => self.write_direct(changed, actions),
            State::Done => {
                self.database.borrow_mut().writer_done(actions);
                Step::Park
            }
        }
    }
}

/// Write-back: the kernel's thread that writes old pages out, or when there are too many.
pub struct WriteBack {
    database: Shared,
}

/// Sectors that are written between two checks (`MAX_WRITEBACK_PAGES`, 1024 pages of 4 KiB).
const WRITE_BACK_SECTORS: u64 = 8 * 1024;

impl WriteBack {
    pub fn new(database: Shared) -> Self {
        Self { database }
    }
}

impl Process for WriteBack {
    fn step(&mut self, now: Time, actions: &mut Actions) -> Step {
        let mut database = self.database.borrow_mut();
        if database.is_over() {
            return Step::End;
        }
        let cache = &mut database.cache;
        let than = match cache.above_background() {
            true => now,
            false => now.saturating_sub(cache.tunables.expire),
        };
        if than > 0 {
            cache.write_back(than, WRITE_BACK_SECTORS, &mut actions.ios);
        }
        match actions.ios.is_empty() {
            true => Step::ParkFor(cache.tunables.interval),
            false => Step::Wait { below: 1 },
        }
    }
}
