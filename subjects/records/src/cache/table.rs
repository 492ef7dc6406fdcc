//! The page table: which frame has a page.
//!
//! Chains of frames, one for each hash of pages. A chain changes only while its stripe is latched, so
//! who latches it finds a page if it is there. Who does not may miss it, and checks with the frame
//! what was found.

use std::hash::BuildHasher;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use concurve_latch::{Class, Mutex, MutexGuard};
use crossbeam_utils::CachePadded;

use crate::cache::frame::Frame;
use crate::counted::AtomicU32;
use crate::page::PageId;
use crate::table::Hashing;

/// A search without the latch gives up after so many frames: while chains change, it may follow
/// parts of several.
const STEPS_MAX: usize = 32;

pub struct PageTable {
    /// The first frame of each chain, from 1; 0: none. A power of two.
    heads: Box<[AtomicU32]>,
    stripes: Box<[CachePadded<Mutex<StripeCounts>>]>,
    hasher: Hashing,
}

/// What is counted under the latch of a stripe.
#[derive(Debug, Clone, Copy, Default)]
struct StripeCounts {
    hits: u64,
    /// In its chains now.
    pages: usize,
}

/// The right to change the chains of a stripe.
pub struct Stripe<'a> {
    table: &'a PageTable,
    counts: MutexGuard<'a, StripeCounts>,
}

impl PageTable {
    /// A table for so many frames, with so many stripes: a power of two.
    pub fn new(class: Class, frames: usize, stripes: usize) -> Self {
        let heads = frames.max(stripes).next_power_of_two();
        Self {
            heads: (0..heads).map(|_| AtomicU32::new(0)).collect(),
            stripes: (0..stripes)
                .map(|_| CachePadded::new(class.mutex(StripeCounts::default())))
                .collect(),
            hasher: Hashing::default(),
        }
    }

    /// Pages that follow each other in a file have heads that do: so those of a file are in few lines.
    fn hash(&self, id: PageId) -> usize {
        let file = self.hasher.hash_one(id.file) as usize >> 20;
        file.wrapping_add(id.number as usize)
    }

    fn head(&self, id: PageId) -> &AtomicU32 {
        &self.heads[self.hash(id) & (self.heads.len() - 1)]
    }

    /// How many pages were found under latches of stripes.
    pub fn hits(&self) -> u64 {
        self.stripes.iter().map(|it| it.lock().hits).sum()
    }

    /// How many pages it has; exact while no thread adds or removes any.
    pub fn pages(&self) -> usize {
        self.stripes.iter().map(|it| it.lock().pages).sum()
    }

    /// Latches the stripe of a page.
    pub fn stripe(&self, id: PageId) -> Stripe<'_> {
        let stripe = &self.stripes[self.hash(id) & (self.stripes.len() - 1)];
        Stripe {
            table: self,
            counts: stripe.lock(),
        }
    }

    /// The frame that seems to have a page.
    #[inline]
    pub fn find(&self, frames: &[CachePadded<Frame>], id: PageId) -> Option<usize> {
        self.search(frames, id, STEPS_MAX)
    }

    #[inline]
    fn search(&self, frames: &[CachePadded<Frame>], id: PageId, steps: usize) -> Option<usize> {
        let mut next = self.head(id).load(Acquire);
        for _ in 0..steps {
            let index = (next as usize).checked_sub(1)?;
            let frame = &frames[index];
            if frame.has(id) {
                return Some(index);
            }
            next = frame.next.load(Acquire);
        }
        None
    }
}

impl Stripe<'_> {
    pub fn count_hit(&mut self) {
        self.counts.hits += 1;
    }

    /// The frame that has a page.
    pub fn find(&self, frames: &[CachePadded<Frame>], id: PageId) -> Option<usize> {
        self.table.search(frames, id, usize::MAX)
    }

    /// Adds a frame, which has the page.
    pub fn add(&mut self, frames: &[CachePadded<Frame>], id: PageId, index: usize) {
        self.counts.pages += 1;
        let head = self.table.head(id);
        frames[index].next.store(head.load(Relaxed), Relaxed);
        head.store(index as u32 + 1, Release);
    }

    /// Removes a frame.
    pub fn remove(&mut self, frames: &[CachePadded<Frame>], id: PageId, index: usize) {
        let mut link = self.table.head(id);
        while let Some(at) = (link.load(Relaxed) as usize).checked_sub(1) {
            let next = &frames[at].next;
            if at == index {
                link.store(next.load(Relaxed), Release);
                self.counts.pages -= 1;
                return;
            }
            link = next;
        }
    }
}
