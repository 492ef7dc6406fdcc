//! The options of an engine.

use std::thread;

use crate::admission::Admission;
use crate::locks::Stripes;
use crate::log::{Durability, LogOptions};

/// The granularity of latching. The results of operations are the same with each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latching {
    /// One operation at a time, and a cache and a lock table of one stripe. Other operations run
    /// while one waits for locks or for the log.
    Global,
    /// One operation at a time on each file.
    File,
    /// Operations latch only the pages that they use.
    Record,
}

/// The options of an engine.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    pub latching: Latching,
    pub durability: Durability,
    /// Pages of the cache, of 8192 bytes each.
    pub cache_pages: usize,
    /// A checkpoint is made when the log has grown by so many bytes since the last one began, or later
    /// ([`EngineOptions::checkpoint_stretch`]).
    pub checkpoint_bytes: u64,
    /// So many times `checkpoint_bytes` the log may grow before a checkpoint begins, if checkpoints at that
    /// distance would take more than an eighth of the time; 1: the distance is always `checkpoint_bytes`.
    /// A start after a crash reads the log from where the last complete checkpoint began, or the oldest
    /// transaction that ran then: so it reads at most that, and what the log grows by during a checkpoint.
    pub checkpoint_stretch: u64,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            latching: Latching::Record,
            durability: Durability::Group,
            cache_pages: 8192,
            checkpoint_bytes: 64 << 20,
            checkpoint_stretch: 4,
        }
    }
}

impl EngineOptions {
    /// The defaults with a checkpoint whenever the log has grown by so many bytes, however long checkpoints
    /// take: for a user who has chosen the distance.
    pub fn with_checkpoint_bytes(checkpoint_bytes: u64) -> Self {
        Self {
            checkpoint_bytes,
            checkpoint_stretch: 1,
            ..Self::default()
        }
    }

    /// By so much the log grows at most before a checkpoint begins.
    pub(crate) fn checkpoint_bytes_max(&self) -> u64 {
        let stretch = self.checkpoint_stretch.max(1);
        self.checkpoint_bytes.saturating_mul(stretch)
    }

    pub(crate) fn log_options(&self) -> LogOptions {
        let is_fine = self.latching == Latching::Record;
        // There are several files between two checkpoints.
        let file_bytes = (self.checkpoint_bytes / 4).clamp(1 << 16, 1 << 24);
        LogOptions {
            file_bytes,
            files: self.checkpoint_bytes_max().div_ceil(file_bytes),
            gathers: is_fine,
            is_in_memory: is_fine && self.durability == Durability::None,
        }
    }
}

/// Stripes of the page table, and of the locks of a file, if several operations run at once. More stripes
/// cause less contention, and use more of a CPU's cache.
const STRIPES: usize = 16;
/// Files whose locks are in different stripes, with latching by record.
const FILES_APART: usize = 16;

/// The number of stripes of the page table.
pub fn page_stripes(latching: Latching) -> usize {
    match latching {
        Latching::Global => 1,
        Latching::File | Latching::Record => STRIPES,
    }
}

/// The stripes of the lock table.
pub fn lock_stripes(latching: Latching) -> Stripes {
    let (of_file, files) = match latching {
        Latching::Global => (1, 1),
        Latching::File => (STRIPES, 1),
        Latching::Record => (STRIPES, FILES_APART),
    };
    Stripes {
        of_file,
        files,
        is_fine: latching == Latching::Record,
    }
}

/// How often a session that may sleep looks whether a lock is free again, before it sleeps. Where locks are
/// kept for some microseconds, to sleep and be woken takes longer. Not where they are kept until the log is
/// forced, nor on one CPU, where the owner cannot go on meanwhile.
pub fn lock_looks(options: &EngineOptions) -> u32 {
    let are_short = options.latching == Latching::Record && options.durability == Durability::None;
    let has_cpus = thread::available_parallelism().is_ok_and(|it| it.get() > 1);
    match are_short && has_cpus {
        true => 200,
        false => 0,
    }
}

/// How transactions are admitted. No limit with global latching, where the latch is the queue, and
/// where a commit sleeps until the log is forced: many must run so that many share a force.
pub fn admission(options: &EngineOptions) -> Admission {
    match (options.latching, options.durability) {
        (Latching::Global, _) | (_, Durability::Group | Durability::Each) => Admission::unlimited(),
        (Latching::File | Latching::Record, Durability::None) => Admission::for_cpus(),
    }
}

/// Whether sessions read pages without latches where nobody changes them. With coarser latching,
/// operations wait for each other anyway.
pub fn is_latch_free(latching: Latching) -> bool {
    latching == Latching::Record
}
