//! The page cache (L1): a fixed number of pages in memory.
//!
//! A page is found through the page table, pinned, and then latched, shared or exclusive, by the guard
//! that is returned. With latching by record, a page whose latch is available is latched at once, without a
//! pin: who latches it looks then whether the page is still there, and who evicts it must have the latch. It
//! can also be read without all that ([`Cache::look`]): nobody else is delayed, and what was read counts only
//! if the page has not changed in the meantime.
//! The clock algorithm chooses pages to evict that were not used since the clock hand passed.

mod double;
mod flush;
mod frame;
mod table;

use std::sync::Arc;
use std::sync::atomic::{self, Ordering::Relaxed};

use concurve_latch::{Mutex, RwLock};
use concurve_probe::huge_pages;

use crate::cache::double::DoubleWrite;
use crate::cache::flush::Flusher;
use crate::cache::frame::{Frame, Pin};
pub use crate::cache::frame::{Obstacle, PageRead, PageWrite};
use crate::cache::table::PageTable;
use crate::classes;
use crate::counted::{AtomicU64, AtomicUsize};
use crate::error::Fault;
use crate::log::Log;
use crate::options::{Latching, is_latch_free, page_stripes};
use crate::page::{PAGE_BYTES, Page, PageId, PageLook, PageMut};
use crate::storage::{Disk, Storage};
use crossbeam_utils::CachePadded;

/// The whole copies of the pages that were written last, at a start.
pub fn double_write_copies(storage: &dyn Storage) -> Result<Vec<Page>, Fault> {
    DoubleWrite::open(storage)?.read()
}

/// The smallest cache: the splits of several sessions fit at once.
pub const PAGES_MIN: usize = 64;
/// Rounds of the clock hand before the cache counts as full.
const ROUNDS: usize = 1000;

/// Words in which hits are counted; a thread uses the one of its seat.
const HIT_WORDS: usize = 64;

/// The pages in memory.
pub struct Cache {
    frames: Box<[CachePadded<Frame>]>,
    table: PageTable,
    /// Each is used by one thread, unless there are more threads than words.
    hits: Box<[CachePadded<atomic::AtomicU64>]>,
    /// Pages are found without latching a stripe of the table.
    is_latch_free: bool,
    clock: CachePadded<Clock>,
    files: CachePadded<Files>,
}

/// Where the next page is looked for that can be evicted.
struct Clock {
    hand: AtomicUsize,
    misses: AtomicU64,
}

struct Files {
    disks: RwLock<Vec<Arc<dyn Disk>>>,
    flusher: Mutex<Flusher>,
}

impl Cache {
    /// A cache of so many pages.
    pub fn new(storage: &dyn Storage, pages: usize, latching: Latching) -> Result<Self, Fault> {
        let (page, class) = (classes::page(), classes::cache());
        let new_frames = (0..pages.max(PAGES_MIN)).map(|_| CachePadded::new(Frame::new(page)));
        // They are asked for at random: to find one of many small pages of the kernel takes as long as to read it.
        let mut frames = Vec::with_capacity(new_frames.len());
        huge_pages::prefer(frames.spare_capacity_mut());
        frames.extend(new_frames);
        Ok(Self {
            table: PageTable::new(class, frames.len(), page_stripes(latching)),
            frames: frames.into_boxed_slice(),
            hits: (0..HIT_WORDS).map(|_| CachePadded::default()).collect(),
            is_latch_free: is_latch_free(latching),
            clock: CachePadded::new(Clock {
                hand: AtomicUsize::new(0),
                misses: AtomicU64::new(0),
            }),
            files: CachePadded::new(Files {
                disks: class.rwlock(Vec::new()),
                flusher: classes::flush().mutex(Flusher::open(storage)?),
            }),
        })
    }

    /// Adds the file with the next number, from 0.
    pub fn add_disk(&self, disk: Arc<dyn Disk>) {
        self.files.disks.write().push(disk);
    }

    /// The file with this number, which exists.
    pub fn disk(&self, file: u32) -> Arc<dyn Disk> {
        Arc::clone(&self.files.disks.read()[file as usize])
    }

    /// The page, latched shared.
    pub fn read(&self, log: &Log, id: PageId) -> Result<PageRead<'_>, Fault> {
        if let Some(page) = self.frame(id).and_then(|it| it.try_to_read(id)) {
            self.count_hit();
            return Ok(page);
        }
        let pin = self.pin(log, id, Source::Disk)?;
        PageRead::latch(pin).ok_or_else(|| unreadable(id))
    }

    /// The page, latched exclusively.
    pub fn write(&self, log: &Log, id: PageId) -> Result<PageWrite<'_>, Fault> {
        if let Some(page) = self.frame(id).and_then(|it| it.try_to_write(id)) {
            self.count_hit();
            return Ok(page);
        }
        let pin = self.pin(log, id, Source::Disk)?;
        PageWrite::latch(pin).ok_or_else(|| unreadable(id))
    }

    /// A page that is not on the disk yet.
    pub fn create(&self, log: &Log, id: PageId) -> Result<PageWrite<'_>, Fault> {
        let pin = self.pin(log, id, Source::Blank)?;
        PageWrite::latch(pin).ok_or_else(|| unreadable(id))
    }

    /// The page as it can be read without latch and pin. To be called with latching by record only. Who
    /// uses what it says counts the hit.
    #[inline]
    pub fn look(&self, id: PageId) -> Result<PageLook<'_>, Obstacle> {
        let index = self.table.find(&self.frames, id);
        self.frames[index.ok_or(Obstacle::Other)?].look(id)
    }

    /// Whether pages may be read by [`Cache::look`].
    pub fn is_latch_free(&self) -> bool {
        self.is_latch_free
    }

    /// How many requested pages were in memory, and how many were read; without those of
    /// [`Cache::look`].
    pub fn hits_and_misses(&self) -> (u64, u64) {
        let hits: u64 = self.hits.iter().map(|it| it.load(Relaxed)).sum();
        (hits + self.table.hits(), self.clock.misses.load(Relaxed))
    }

    /// How many pages are in memory, and how many it can hold.
    pub fn pages_and_room(&self) -> (usize, usize) {
        (self.table.pages(), self.frames.len())
    }

    /// The frame that seems to have a page, if it may be used without latching a stripe of the table.
    #[inline]
    fn frame(&self, id: PageId) -> Option<&Frame> {
        let index = self
            .is_latch_free
            .then(|| self.table.find(&self.frames, id));
        index.flatten().map(|it| &*self.frames[it])
    }

    fn count_hit(&self) {
        let seat = concurve_latch::seat_number();
        self.hits[seat % HIT_WORDS].fetch_add(1, Relaxed);
    }

    /// Pins the page, if it is in memory.
    fn pin_resident(&self, id: PageId) -> Option<Pin<'_>> {
        if let Some(pin) = self.frame(id).and_then(|it| it.pin(id)) {
            self.count_hit();
            return Some(pin);
        }
        let mut stripe = self.table.stripe(id);
        let index = stripe.find(&self.frames, id)?;
        stripe.count_hit();
        Some(self.frames[index].pin_in_table())
    }

    fn pin(&self, log: &Log, id: PageId, source: Source) -> Result<Pin<'_>, Fault> {
        if let Some(pin) = self.pin_resident(id) {
            return Ok(pin);
        }
        let index = self.claim(log)?;
        let frame = &self.frames[index];
        let mut stripe = self.table.stripe(id);
        if let Some(other) = stripe.find(&self.frames, id) {
            frame.give_back();
            return Ok(self.frames[other].pin_in_table());
        }
        // The page is in the table before it is read: others that need it wait for its latch.
        let mut page = frame.take(id);
        stripe.add(&self.frames, id, index);
        drop(stripe);
        let loaded = match source {
            Source::Disk => self.load(id),
            Source::Blank => Ok(Page::blank()),
        };
        match loaded {
            Ok(contents) => {
                page.put(0, &contents[..]);
                page.validate();
                Ok(page.unlatch())
            }
            Err(fault) => {
                let pin = page.unlatch();
                let mut stripe = self.table.stripe(id);
                stripe.remove(&self.frames, id, index);
                // Waiting threads find it invalid; the frame is free when the last one has unpinned
                // it.
                pin.give_up();
                Err(fault)
            }
        }
    }

    fn load(&self, id: PageId) -> Result<Page, Fault> {
        self.clock.misses.fetch_add(1, Relaxed);
        let at = u64::from(id.number) * PAGE_BYTES as u64;
        let mut page = Page::blank();
        let read = self
            .disk(id.file)
            .read_at(page.bytes_mut(), at)
            .map_err(Fault::io(|| format!("read {id}")))?;
        page.bytes_mut()[read..].fill(0);
        if !page.is_whole(id) {
            let text = format!("{id} is damaged on the disk, from byte {at} of the file on");
            return Err(Fault::Damaged(text));
        }
        Ok(page)
    }

    /// An empty frame, claimed.
    fn claim(&self, log: &Log) -> Result<usize, Fault> {
        for round in 0..ROUNDS {
            for _ in 0..self.frames.len() {
                let index = self.clock.hand.fetch_add(1, Relaxed) % self.frames.len();
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
        if !frame.is_idle() {
            return false;
        }
        let Some(id) = frame.id() else {
            return frame.claim_empty();
        };
        if frame.is_dirty() {
            return false;
        }
        let mut stripe = self.table.stripe(id);
        if !frame.has(id) || !frame.claim() {
            return false;
        }
        let is_empty = frame.clear(|| stripe.remove(&self.frames, id, index));
        if !is_empty {
            frame.give_back();
        }
        is_empty
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
