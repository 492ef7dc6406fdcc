//! How much of the lock table is in use, counted over all partitions.

use std::mem::size_of;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::lock_table::entry::{Entry, Group};

/// The capacity of the lock table, and what is in use.
#[derive(Debug)]
pub struct TableUsage {
    capacity: u64,
    locks: Gauge,
    arguments: Gauge,
}

/// A count, and its highest value so far.
#[derive(Debug, Default)]
pub struct Gauge {
    now: AtomicU64,
    peak: AtomicU64,
}

impl Gauge {
    pub fn now(&self) -> u64 {
        self.now.load(Relaxed)
    }

    /// High-water mark.
    pub fn peak(&self) -> u64 {
        self.peak.load(Relaxed)
    }

    pub fn add(&self) -> u64 {
        let now = self.now.fetch_add(1, Relaxed) + 1;
        if now > self.peak() {
            self.peak.fetch_max(now, Relaxed);
        }
        now
    }

    pub fn subtract(&self) {
        self.now.fetch_sub(1, Relaxed);
    }
}

impl TableUsage {
    pub fn new(capacity: u64) -> Self {
        Self {
            capacity,
            locks: Gauge::default(),
            arguments: Gauge::default(),
        }
    }

    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    pub fn locks(&self) -> &Gauge {
        &self.locks
    }

    pub fn arguments(&self) -> &Gauge {
        &self.arguments
    }

    /// Bytes of the most locks and of the most arguments held so far; without the room that is kept
    /// for more, and without the indexes.
    pub fn memory_peak(&self) -> u64 {
        let bytes = |gauge: &Gauge, each: usize| gauge.peak() * each as u64;
        bytes(&self.locks, size_of::<Option<Entry>>())
            + bytes(&self.arguments, size_of::<Option<Group>>())
    }

    /// Counts one more lock, if the capacity allows it; false if not.
    pub fn reserve_lock(&self) -> bool {
        // Checked before the increment: a full table must not raise the high-water mark above its
        // capacity.
        let taken = self.locks.now.fetch_update(Relaxed, Relaxed, |now| {
            (now < self.capacity).then_some(now + 1)
        });
        match taken {
            Ok(before) if before + 1 > self.locks.peak() => {
                self.locks.peak.fetch_max(before + 1, Relaxed);
                true
            }
            taken => taken.is_ok(),
        }
    }

    pub fn release_lock(&self) {
        self.locks.subtract();
    }

    pub fn add_argument(&self) {
        self.arguments.add();
    }

    pub fn remove_argument(&self) {
        self.arguments.subtract();
    }
}
