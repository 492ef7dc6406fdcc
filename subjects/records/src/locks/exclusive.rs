//! Which records and files are locked exclusively, for readers that take no lock.
//!
//! Each name of a lock has a word, and shares it with other names. The word counts the exclusive
//! locks of its names, and is changed under the latch of their stripe. So a name whose word is 0 is
//! not locked exclusively; if it is not 0, it may be the lock of another name.
//!
//! Why a reader need not write anything: who changes a record holds its lock (or that of the whole
//! file) exclusively from before the first change until the transaction has committed and its log is
//! as durable as promised, or until all is undone. A reader that has read a page, finds the words 0,
//! and then finds that the page has not changed since it began to read, has read what is committed.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::counted::AtomicU32;

/// A power of two, and not less than the stripes of the lock table.
const WORDS: usize = 1 << 14;

#[derive(Debug)]
pub(super) struct ExclusiveCounts(Box<[AtomicU32]>);

impl ExclusiveCounts {
    pub fn new() -> Self {
        Self((0..WORDS).map(|_| AtomicU32::new(0)).collect())
    }

    fn word(&self, hash: usize) -> &AtomicU32 {
        &self.0[hash & (WORDS - 1)]
    }

    /// Whether no name with this hash is locked exclusively.
    #[inline]
    pub fn is_none(&self, hash: usize) -> bool {
        self.word(hash).load(Acquire) == 0
    }

    /// Notes that a lock is now held exclusively, or not, and was before, or not. To be called while
    /// the stripe is latched.
    pub fn note(&self, hash: usize, before: bool, now: bool) {
        let word = self.word(hash);
        let count = word.load(Relaxed);
        match (before, now) {
            (false, true) => word.store(count + 1, Release),
            (true, false) => word.store(count - 1, Release),
            _ => {}
        }
    }
}
