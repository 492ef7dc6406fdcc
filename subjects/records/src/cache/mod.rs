//! The page cache (L1): a fixed number of pages in memory.
//!
//! A page is found through a stripe of the page table, pinned, and then latched, shared or
//! exclusive, by the guard that is returned. Pins are only added while the stripe is latched, so a
//! page without pins can be removed under the stripe alone. The clock algorithm chooses pages that
//! were not used since the clock hand passed.

mod double;
mod flush;
mod frame;

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicU64, AtomicUsize};

use concurve_latch::{Mutex, MutexGuard, RwLock};

use crate::cache::double::DoubleWrite;
use crate::cache::flush::Flusher;
use crate::cache::frame::Frame;
pub use crate::cache::frame::{PageRead, PageWrite};
use crate::classes;
use crate::error::Fault;
use crate::log::Log;
use crate::page::{PAGE_BYTES, Page, PageId};
use crate::storage::{Disk, Storage};
use crate::table::{Hashing, Table};
use crossbeam_utils::CachePadded;

/// The whole copies of the pages that were written last, at a start.
pub fn double_write_copies(storage: &dyn Storage) -> Result<Vec<Page>, Fault> {
    DoubleWrite::open(storage)?.read()
}

/// The smallest cache: the splits of several sessions fit at once.
pub const PAGES_MIN: usize = 64;
/// Rounds of the clock hand before the cache counts as full.
const ROUNDS: usize = 1000;

/// The frames of some pages, and the number of hits.
#[derive(Default)]
struct Stripe {
    frames: Table<PageId, usize>,
    hits: u64,
}

/// The pages in memory.
pub struct Cache {
    frames: Box<[CachePadded<Frame>]>,
    /// The page table.
    table: Box<[CachePadded<Mutex<Stripe>>]>,
    hasher: Hashing,
    hand: AtomicUsize,
    misses: AtomicU64,
    disks: RwLock<Vec<Arc<dyn Disk>>>,
    flusher: Mutex<Flusher>,
}

impl Cache {
    /// A cache of so many pages, whose table has so many stripes: a power of two.
    pub fn new(storage: &dyn Storage, pages: usize, stripes: usize) -> Result<Self, Fault> {
        let (page, class) = (classes::page(), classes::cache());
        let stripe = |_| CachePadded::new(class.mutex(Stripe::default()));
        Ok(Self {
            frames: (0..pages.max(PAGES_MIN))
                .map(|_| CachePadded::new(Frame::new(page)))
                .collect(),
            table: (0..stripes).map(stripe).collect(),
            hasher: Hashing::default(),
            hand: AtomicUsize::new(0),
            misses: AtomicU64::new(0),
            disks: class.rwlock(Vec::new()),
            flusher: classes::flush().mutex(Flusher::open(storage)?),
        })
    }

    /// Adds the file with the next number, from 0.
    pub fn add_disk(&self, disk: Arc<dyn Disk>) {
        self.disks.write().push(disk);
    }

    /// The file with this number, which exists.
    pub fn disk(&self, file: u32) -> Arc<dyn Disk> {
        Arc::clone(&self.disks.read()[file as usize])
    }

    /// The page, latched shared.
    pub fn read(&self, log: &Log, id: PageId) -> Result<PageRead<'_>, Fault> {
        let pin = self.pin(log, id, Source::Disk)?;
        PageRead::latch(pin).ok_or_else(|| unreadable(id))
    }

    /// The page, latched exclusively.
    pub fn write(&self, log: &Log, id: PageId) -> Result<PageWrite<'_>, Fault> {
        let pin = self.pin(log, id, Source::Disk)?;
        PageWrite::latch(pin).ok_or_else(|| unreadable(id))
    }

    /// A page that is not on the disk yet.
    pub fn create(&self, log: &Log, id: PageId) -> Result<PageWrite<'_>, Fault> {
        let pin = self.pin(log, id, Source::Blank)?;
        PageWrite::latch(pin).ok_or_else(|| unreadable(id))
    }

    /// How many requested pages were in memory, and how many were read.
    pub fn hits_and_misses(&self) -> (u64, u64) {
        let stripes = self.table.iter();
        let hits = stripes.map(|it| it.lock().hits).sum();
        (hits, self.misses.load(Relaxed))
    }

    fn stripe(&self, id: PageId) -> MutexGuard<'_, Stripe> {
        // The hash table of a stripe uses the lowest and the highest bits of the hash.
        let hash = self.hasher.hash_one(id) as usize >> 20;
        self.table[hash & (self.table.len() - 1)].lock()
    }

    fn pin(&self, log: &Log, id: PageId, source: Source) -> Result<frame::Pin<'_>, Fault> {
        {
            let mut stripe = self.stripe(id);
            if let Some(index) = stripe.frames.get(&id).copied() {
                stripe.hits += 1;
                return Ok(self.frames[index].pin());
            }
        }
        let index = self.claim(log)?;
        let frame = &self.frames[index];
        let mut stripe = self.stripe(id);
        if let Some(other) = stripe.frames.get(&id) {
            frame.free();
            return Ok(self.frames[*other].pin());
        }
        // The page is in the table before it is read: others that need it wait for its latch.
        let mut content = frame.content.write();
        stripe.frames.insert(id, index);
        drop(stripe);
        frame.take(id);
        let loaded = match source {
            Source::Disk => self.load(id, &mut content.page),
            Source::Blank => {
                content.page.bytes_mut().fill(0);
                Ok(())
            }
        };
        content.is_valid = loaded.is_ok();
        drop(content);
        if let Err(fault) = loaded {
            self.stripe(id).frames.remove(&id);
            // Waiting threads find it invalid; the frame is free when the last one has unpinned it.
            frame.free();
            return Err(fault);
        }
        Ok(frame::Pin(frame))
    }

    fn load(&self, id: PageId, page: &mut Page) -> Result<(), Fault> {
        self.misses.fetch_add(1, Relaxed);
        let at = u64::from(id.number) * PAGE_BYTES as u64;
        let bytes = page.bytes_mut();
        let read = self
            .disk(id.file)
            .read_at(bytes, at)
            .map_err(Fault::io(|| format!("read {id}")))?;
        bytes[read..].fill(0);
        if !page.is_whole(id) {
            let text = format!("{id} is damaged on the disk, from byte {at} of the file on");
            return Err(Fault::Damaged(text));
        }
        Ok(())
    }

    /// An empty frame, pinned.
    fn claim(&self, log: &Log) -> Result<usize, Fault> {
        for round in 0..ROUNDS {
            for _ in 0..self.frames.len() {
                let index = self.hand.fetch_add(1, Relaxed) % self.frames.len();
                if self.evict(index) {
                    return Ok(index);
                }
            }
            // The first round clears the marks of use.
            if round > 0 && !self.flush_some(log)? {
                std::thread::yield_now();
            }
        }
        Err(Fault::CacheFull)
    }

    /// Claims a frame, if its page can be evicted.
    fn evict(&self, index: usize) -> bool {
        let frame = &self.frames[index];
        if frame.pins.load(Relaxed) > 0 || frame.used.swap(false, Relaxed) {
            return false;
        }
        let Some(id) = frame.id() else {
            return frame.claim_empty();
        };
        if frame.is_dirty.load(Acquire) {
            return false;
        }
        let mut stripe = self.stripe(id);
        if stripe.frames.get(&id) != Some(&index) || frame.is_dirty.load(Acquire) || !frame.claim()
        {
            return false;
        }
        stripe.frames.remove(&id);
        true
    }
}

/// Where a page comes from.
#[derive(Debug, Clone, Copy)]
enum Source {
    Disk,
    Blank,
}

fn unreadable(id: PageId) -> Fault {
    Fault::Damaged(format!("{id} could not be read"))
}
