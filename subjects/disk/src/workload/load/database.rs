//! The database: its cache of changed pages, where they go, and its savepoints.

use std::cell::RefCell;
use std::rc::Rc;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::plan::{Assumptions, Load};
use super::tables::{self, File};
use crate::error::Error;
use crate::page_cache::PageCache;
use crate::request::SECTOR_BYTES;
use crate::workload::Actions;

/// Shared by the processes of one load.
pub type Shared = Rc<RefCell<Database>>;

/// Pages of the database: 8 KiB.
const PAGE_SECTORS: u64 = 16;

/// The indexes of the database's processes.
#[derive(Debug, Clone)]
pub struct Places {
    pub writers: Vec<usize>,
    pub write_back: usize,
    pub closing: Vec<usize>,
}

impl Places {
    pub fn of(load: &Load) -> Self {
        let (loaders, volumes) = (load.loaders as usize, load.volumes as usize);
        let write_back = loaders + volumes;
        Self {
            writers: (loaders..write_back).collect(),
            write_back,
            closing: (write_back + 1..write_back + 3).collect(),
        }
    }
}

/// Sectors of the host's volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    pub start: u64,
    pub sectors: u64,
}

/// Changed pages of one data volume that the next savepoint writes: (sector, sectors).
pub type Changed = Vec<(u64, u64)>;

pub struct Database {
    pub assumptions: Assumptions,
    pub places: Places,
    /// Files that no loader has taken yet; they are taken from the end.
    files: Vec<File>,
    pub exports: Region,
    pub volumes: Vec<Region>,
    pub log: Region,
    /// Sectors used of each volume; new pages go there.
    used: Vec<u64>,
    /// The volume that gets the next pages, round robin.
    turn: usize,
    changed: Vec<Changed>,
    pub cache: PageCache,
    savepoint: Savepoint,
    loaders_left: u32,
    closing_left: usize,
    random: SmallRng,
}

#[derive(Debug, Default)]
struct Savepoint {
    writers_busy: usize,
    /// Loaders whose pages the savepoint under way writes, and those that came after its start.
    waiting: Vec<usize>,
    next: Vec<usize>,
}

impl Database {
    /// # Errors
    /// Usage: it does not fit on a volume of so many sectors.
    pub fn new(
        load: &Load,
        assumptions: Assumptions,
        sectors: u64,
        places: Places,
    ) -> Result<Self, Error> {
        let mut files = tables::files(load);
        files.reverse();
        let export_bytes = (load.bytes as f64 * assumptions.export_share) as u64;
        let mut next = 0;
        let mut region = |bytes: u64| {
            let region = Region {
                start: next,
                sectors: bytes / SECTOR_BYTES / PAGE_SECTORS * PAGE_SECTORS,
            };
            next += region.sectors;
            region
        };
        // In the order in which the document's author created them.
        let exports = region(export_bytes.max(1 << 20));
        let volumes: Vec<Region> = (0..load.volumes)
            .map(|_| region(load.volume_bytes))
            .collect();
        let log = region(load.log_bytes);
        if next > sectors {
            let gigabytes = |it: u64| it as f64 * SECTOR_BYTES as f64 / 1e9;
            return Err(Error::Usage(format!(
                "exports, data volumes and log take {:.1} GB, and the disks have {:.1} GB: \
                 give more --disks",
                gigabytes(next),
                gigabytes(sectors)
            )));
        }
        Ok(Self {
            cache: PageCache::new(assumptions.page_cache, volumes.len()),
            used: vec![0; volumes.len()],
            changed: vec![Changed::new(); volumes.len()],
            turn: 0,
            savepoint: Savepoint::default(),
            loaders_left: load.loaders,
            closing_left: places.closing.len(),
            random: SmallRng::seed_from_u64(load.seed ^ 0x5ca7),
            assumptions,
            places,
            files,
            exports,
            volumes,
            log,
        })
    }

    /// The next file that no loader has taken.
    pub fn take_file(&mut self) -> Option<File> {
        self.files.pop()
    }

    /// Adds pages of a table: spread evenly over the volumes, each time after the last ones.
    pub fn insert(&mut self, bytes: u64) {
        let mut left = bytes.div_ceil(PAGE_SECTORS * SECTOR_BYTES);
        // Clusters of up to 64 pages stay together.
        while left > 0 {
            let pages = left.min(64);
            left -= pages;
            let sectors = pages * PAGE_SECTORS;
            let volume = self.turn;
            self.turn = (self.turn + 1) % self.volumes.len();
            let region = self.volumes[volume];
            let at = self.used[volume] % (region.sectors - sectors);
            self.changed[volume].push((region.start + at, sectors));
            self.used[volume] += sectors;
        }
    }

    /// Changes random pages among those in use.
    fn scatter(&mut self) {
        for _ in 0..self.assumptions.scattered_pages {
            let volume = self.random.random_range(0..self.volumes.len());
            let pages = (self.used[volume] / PAGE_SECTORS).max(64);
            let page = self.random.random_range(0..pages);
            let sector = self.volumes[volume].start + page * PAGE_SECTORS;
            self.changed[volume].push((sector, PAGE_SECTORS));
        }
    }

    // -- savepoints ---------------------------------------------------------------------------

    /// A loader has ended a table and waits for a savepoint. One is made at a time; a loader that
    /// asks during one waits for the next.
    pub fn want_savepoint(&mut self, loader: usize, actions: &mut Actions) {
        self.scatter();
        self.savepoint.next.push(loader);
        if self.savepoint.waiting.is_empty() {
            self.begin_savepoint(actions);
        }
    }

    fn begin_savepoint(&mut self, actions: &mut Actions) {
        self.savepoint.waiting = std::mem::take(&mut self.savepoint.next);
        if !self.savepoint.waiting.is_empty() {
            self.savepoint.writers_busy = self.places.writers.len();
            actions.wake.extend(&self.places.writers);
        }
    }

    /// The pages that a writer has to write for the current savepoint.
    pub fn take_changed(&mut self, volume: usize) -> Changed {
        let mut changed = std::mem::take(&mut self.changed[volume]);
        changed.sort_unstable();
        changed
    }

    /// A writer is done; the last one wakes the waiting loaders and begins the next savepoint.
    pub fn writer_done(&mut self, actions: &mut Actions) {
        self.savepoint.writers_busy -= 1;
        if self.savepoint.writers_busy == 0 {
            actions.wake.append(&mut self.savepoint.waiting);
            self.begin_savepoint(actions);
        }
    }

    // -- the end ------------------------------------------------------------------------------

    /// A loader has ended; the last one wakes the closing jobs.
    pub fn loader_done(&mut self, actions: &mut Actions) {
        self.loaders_left -= 1;
        if self.loaders_left == 0 {
            actions.wake.extend(&self.places.closing);
        }
    }

    /// A closing job has ended; the last one ends the writers and write-back.
    pub fn closing_done(&mut self, actions: &mut Actions) {
        self.closing_left -= 1;
        if self.is_over() {
            actions.wake.extend(&self.places.writers);
            actions.wake.push(self.places.write_back);
        }
    }

    pub fn is_over(&self) -> bool {
        self.closing_left == 0
    }

    /// A random used place, for a closing job to read.
    pub fn any_used(&mut self, sectors: u64) -> u64 {
        let volume = self.random.random_range(0..self.volumes.len());
        let used = self.used[volume].min(self.volumes[volume].sectors);
        let last = used.saturating_sub(sectors);
        self.volumes[volume].start
            + self.random.random_range(0..=last) / PAGE_SECTORS * PAGE_SECTORS
    }

    /// Sectors used on all volumes.
    pub fn used(&self) -> u64 {
        self.used.iter().sum()
    }
}
