//! The entry of one thread in the board: what it holds, and its counters.

use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::class::{CLASSES, Class};

/// Threads that may use latches at the same time, in all processes of a board.
pub const SEATS: usize = 4096;

/// One thread's entry. All zeros is a free one.
///
/// Each tally fills a cache line, so the entries of two threads share none.
#[repr(C)]
pub struct Seat {
    pub is_taken: AtomicU32,
    /// The engine that the thread belongs to; 0: none.
    pub engine: AtomicU32,
    /// Its number from 1: what stands in the latches that its thread holds.
    pub mark: AtomicU32,
    tallies: [Tally; CLASSES],
}

/// What one thread did with latches of one class, since the board was made. Written by that thread
/// alone: no addition needs to be atomic.
///
/// Exactly one cache line: with the 128 bytes of `CachePadded` a board would be twice as large.
#[repr(C, align(64))]
pub struct Tally {
    /// Counted before the thread tries to take a latch, and taken back if it does not get it.
    pub begun: AtomicU64,
    /// Counted after a latch was released.
    pub ended: AtomicU64,
    /// Latches that another thread held at the first try.
    pub waits: AtomicU64,
    /// Checks of a taken latch before sleeping.
    pub spins: AtomicU64,
    /// Sleeps.
    pub sleeps: AtomicU64,
}

const _: () = assert!(size_of::<Tally>() == 64);
const _: () = assert!(size_of::<Seat>() == 64 * (1 + CLASSES) && align_of::<Seat>() == 64);

/// Adds to a counter that no other thread writes.
#[inline]
pub fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
}

impl Tally {
    #[inline]
    pub fn begin(&self) {
        add(&self.begun, 1);
    }

    #[inline]
    pub fn take_back(&self) {
        add(&self.begun, u64::MAX);
    }

    #[inline]
    pub fn end(&self) {
        add(&self.ended, 1);
    }

    pub fn held(&self) -> u64 {
        // `ended` is read first: otherwise a latch that is taken and released in between would
        // count as -1.
        let ended = self.ended.load(Acquire);
        self.begun.load(Acquire).saturating_sub(ended)
    }
}

impl Seat {
    #[inline]
    pub fn tally(&self, class: Class) -> &Tally {
        &self.tallies[class.index()]
    }

    #[inline]
    pub fn mark(&self) -> u32 {
        self.mark.load(Relaxed)
    }

    pub fn is_taken(&self) -> bool {
        self.is_taken.load(Acquire) != 0
    }
}
