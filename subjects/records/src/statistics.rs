//! Counts of an engine.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Counts since the engine was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Transactions begun.
    pub begun: u64,
    /// Transactions that committed changes, and changes outside of transactions.
    pub commits: u64,
    /// Transactions aborted by their sessions, or by the end of these.
    pub aborts: u64,
    /// How often a session waited for a lock.
    pub lock_waits: u64,
    pub deadlocks: u64,
    /// How often the log was forced to the disk.
    pub log_syncs: u64,
    /// Bytes written to the log.
    pub log_bytes: u64,
    /// Requested pages that were in the cache, and that were not.
    pub cache_hits: u64,
    pub cache_misses: u64,
    pub checkpoints: u64,
}

impl Statistics {
    /// All counts with their names.
    pub fn named(&self) -> [(&'static str, u64); 10] {
        [
            ("begun", self.begun),
            ("commits", self.commits),
            ("aborts", self.aborts),
            ("lock_waits", self.lock_waits),
            ("deadlocks", self.deadlocks),
            ("log_syncs", self.log_syncs),
            ("log_bytes", self.log_bytes),
            ("cache_hits", self.cache_hits),
            ("cache_misses", self.cache_misses),
            ("checkpoints", self.checkpoints),
        ]
    }
}

/// A count that one thread at a time changes and all may read: without an atomic addition.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    pub fn add(&self, more: u64) {
        self.0.store(self.0.load(Relaxed) + more, Relaxed);
    }

    pub fn now(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Counts of one session.
#[derive(Debug, Default)]
pub struct SessionCounts {
    pub begun: Count,
    pub commits: Count,
    pub aborts: Count,
    pub lock_waits: Count,
    pub deadlocks: Count,
    /// Pages that were in the cache, and were read without a latch.
    pub cache_hits: Count,
}

impl SessionCounts {
    pub fn add_to(&self, sum: &mut Statistics) {
        sum.begun += self.begun.now();
        sum.commits += self.commits.now();
        sum.aborts += self.aborts.now();
        sum.lock_waits += self.lock_waits.now();
        sum.deadlocks += self.deadlocks.now();
        sum.cache_hits += self.cache_hits.now();
    }
}
