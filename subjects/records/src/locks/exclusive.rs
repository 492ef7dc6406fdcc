//! Which records and files are locked exclusively, for readers that take no lock.
//!
//! Each name of a lock has a word in its stripe of the lock table, and shares it with other names. The
//! word counts the exclusive locks of its names, and is changed under the latch of the stripe. So a
//! name whose word is 0 is not locked exclusively; if it is not 0, it may be the lock of another name.
//!
//! Why a reader need not write anything: who changes a record holds its lock (or that of the whole
//! file) exclusively from before the first change until the transaction has committed and its log is
//! as durable as promised, or until all is undone. A reader that has read a page, finds the words 0,
//! and then finds that the page has not changed since it began to read, has read what is committed.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::counted::AtomicU16;

/// In one cache line, beside the latch of the stripe.
const WORDS: usize = 32;

#[derive(Debug, Default)]
pub(super) struct ExclusiveCounts([AtomicU16; WORDS]);

impl ExclusiveCounts {
    fn word(&self, hash: usize) -> &AtomicU16 {
        &self.0[hash % WORDS]
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
            (false, true) => {
                let more = count
                    .checked_add(1)
                    .expect("the locks of a word fill the memory first");
                word.store(more, Release);
            }
            (true, false) => word.store(count - 1, Release),
            _ => {}
        }
    }
}
