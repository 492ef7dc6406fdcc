//! The dials of an engine.

use crate::gate::Gate;
use crate::log::Durability;

/// How finely the engine divides its work among threads. What operations do is the same in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latching {
    /// One operation at a time, and a cache and a lock table of one part. Waiting for locks, and for
    /// the log to be on the disk, lets others work.
    Global,
    /// One operation at a time on each file.
    File,
    /// Operations latch the pages that they use.
    Record,
}

/// The dials of an engine.
#[derive(Debug, Clone)]
pub struct Settings {
    pub latching: Latching,
    pub durability: Durability,
    /// Pages of the cache, of 8192 bytes each.
    pub cache_pages: usize,
    /// A checkpoint is made when the log has grown by that many bytes.
    pub checkpoint_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            latching: Latching::Record,
            durability: Durability::Group,
            cache_pages: 8192,
            checkpoint_bytes: 64 << 20,
        }
    }
}

impl Settings {
    /// Length of a file of the log: several make the way from a checkpoint to the next.
    pub(crate) fn log_file_bytes(&self) -> u64 {
        (self.checkpoint_bytes / 4).clamp(1 << 16, 1 << 24)
    }
}

/// Parts of the cache's table and of the lock table, where several may use them at once. More of
/// them hinder each other less, and take more of a CPU's own cache.
const STRIPES: usize = 16;

/// Parts of what is divided, by the dial.
pub fn stripes(latching: Latching) -> usize {
    match latching {
        Latching::Global => 1,
        Latching::File | Latching::Record => STRIPES,
    }
}

/// Where transactions queue up for CPUs. Under global latching the one turn for all is the queue; and
/// where a commit sleeps until the disk has it, so many must be at work that many share a force.
pub fn gate(settings: &Settings) -> Gate {
    match (settings.latching, settings.durability) {
        (Latching::Global, _) | (_, Durability::Group | Durability::Each) => Gate::open(),
        (Latching::File | Latching::Record, Durability::None) => Gate::of_cpus(),
    }
}
