//! The jobs of the migration: loaders, and the closing jobs after them.

use super::database::Shared;
use super::tables::File;
use crate::request::{Io, SECTOR_BYTES};
use crate::time::{MILLISECOND, Time};
use crate::workload::{Actions, Process, Step};

/// The next step of a loader.
#[derive(Debug, Clone, Copy)]
enum State {
    NextTable,
    Read { left: u64 },
    Compute { left: u64, bytes: u64 },
    Insert { left: u64, bytes: u64 },
    Savepoint,
}

/// A loader: takes a file, loads its tables, has a savepoint made after each.
pub struct Loader {
    database: Shared,
    number: usize,
    /// Tables of its file that are still to be loaded.
    file: File,
    state: State,
    /// Where it reads in the exports, and where it writes in the log, as sectors.
    reads_at: u64,
    logs_at: u64,
    since_commit: u64,
}

/// What is read at a time: the kernel's read-ahead window.
const WINDOW_SECTORS: u64 = 256;

impl Loader {
    pub fn new(database: Shared, number: usize) -> Self {
        let exports = database.borrow().exports;
        Self {
            number,
            file: File::new(),
            state: State::NextTable,
            // Each begins at another place, as their files do.
            reads_at: exports.sectors / 8 * number as u64,
            logs_at: 0,
            since_commit: 0,
            database,
        }
    }

    fn next_table(&mut self, actions: &mut Actions) -> Step {
        let mut database = self.database.borrow_mut();
        while self.file.is_empty() {
            match database.take_file() {
                Some(file) => self.file = file,
                None => {
                    database.loader_done(actions);
                    return Step::End;
                }
            }
        }
        let left = self.file.pop().expect("the file has tables");
        self.state = State::Read { left };
        Step::Wait { below: 1 }
    }

    /// The next window of the export, and how many bytes of the database it makes.
    fn read(&mut self, left: u64, actions: &mut Actions) -> Step {
        let database = self.database.borrow();
        let exports = database.exports;
        let share = database.assumptions.export_share;
        let window = (WINDOW_SECTORS * SECTOR_BYTES) as f64 / share;
        let bytes = left.min(window as u64);
        let sectors = ((bytes as f64 * share) as u64 / SECTOR_BYTES).clamp(8, WINDOW_SECTORS);
        let at = self.reads_at % (exports.sectors - WINDOW_SECTORS);
        actions
            .ios
            .push(Io::read(exports.start + at, sectors as u32));
        self.reads_at += sectors;
        self.state = State::Compute { left, bytes };
        Step::Wait { below: 1 }
    }

    fn compute(&mut self, left: u64, bytes: u64) -> Step {
        let per_megabyte = self.database.borrow().assumptions.cpu_per_megabyte;
        self.state = State::Insert { left, bytes };
        Step::Sleep((bytes as f64 / 1e6 * per_megabyte as f64) as Time)
    }

    fn insert(&mut self, left: u64, bytes: u64, actions: &mut Actions) -> Step {
        let mut database = self.database.borrow_mut();
        database.insert(bytes);
        self.since_commit += bytes;
        let left = left - bytes;
        let commit = (database.assumptions.commit_megabytes * 1e6) as u64;
        if self.since_commit >= commit || left == 0 {
            let logged = self.since_commit as f64 * database.assumptions.log_share;
            let sectors = (logged as u64).div_ceil(SECTOR_BYTES).clamp(1, 1024);
            let log = database.log;
            let at = (self.logs_at + self.number as u64 * 1024) % (log.sectors - 1024);
            actions
                .ios
                .push(Io::write(log.start + at, sectors as u32, true));
            self.logs_at += sectors;
            self.since_commit = 0;
        }
        self.state = if left > 0 {
            State::Read { left }
        } else {
            State::Savepoint
        };
        Step::Wait { below: 1 }
    }
}

impl Process for Loader {
    fn step(&mut self, _now: Time, actions: &mut Actions) -> Step {
        match self.state {
            State::NextTable => self.next_table(actions),
            State::Read { left } => self.read(left, actions),
            State::Compute { left, bytes } => self.compute(left, bytes),
            State::Insert { left, bytes } => self.insert(left, bytes, actions),
            State::Savepoint => {
                self.state = State::NextTable;
                self.database
                    .borrow_mut()
                    .want_savepoint(self.number, actions);
                Step::Park
            }
        }
    }
}

/// What it reads in one place: 64 KiB, and how long it computes for that.
const PART_SECTORS: u64 = 128;
const COMPUTES: Time = MILLISECOND;

/// A closing job: reads random parts of what was loaded.
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
    fn step(&mut self, now: Time, actions: &mut Actions) -> Step {
        // Parked at the start; it is woken when all is loaded.
        if now == 0 {
            return Step::Park;
        }
        if std::mem::take(&mut self.has_read) {
            return Step::Sleep(COMPUTES);
        }
        let left = self.left.unwrap_or_else(|| self.share());
        if left == 0 {
            self.database.borrow_mut().closing_done(actions);
            return Step::End;
        }
        self.left = Some(left.saturating_sub(PART_SECTORS));
        self.has_read = true;
        let at = self.database.borrow_mut().any_used(PART_SECTORS);
        actions.ios.push(Io::read(at, PART_SECTORS as u32));
        Step::Wait { below: 1 }
    }
}
