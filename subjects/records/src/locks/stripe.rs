//! The overflow of a stripe of the lock table: locks that several owners hold, or somebody waits for, or
//! whose word was taken by another lock.

use crate::locks::lock::{Holder, Lock};
use crate::locks::word::Presence;
use crate::table::Table;

/// A stripe without locks frees its table if the capacity of that is larger than this.
const TABLE_LOCKS: usize = 256;

/// What stands for the name of a lock in its stripe.
pub(super) type Key = u64;

#[derive(Debug, Default)]
pub(super) struct Stripe(Table<Key, Lock>);

// With the latch, one cache line.
const _: () = assert!(size_of::<Stripe>() <= 56);

impl Stripe {
    /// Adds a lock that one owner holds.
    pub fn add(&mut self, key: Key, holder: Holder) {
        self.0.entry(key).or_default().holders.push(holder);
    }

    pub fn get(&self, key: Key) -> Option<&Lock> {
        self.0.get(&key)
    }

    /// Changes a lock, which is there afterwards only if somebody holds it or waits for it. Returns whether
    /// it was there before, and is now.
    pub fn change<R>(
        &mut self,
        key: Key,
        change: impl FnOnce(&mut Lock) -> R,
    ) -> (R, Presence, Presence) {
        let lock = self.0.entry(key).or_default();
        let before = presence(lock);
        let done = change(lock);
        let now = presence(lock);
        if !now.is_there {
            self.0.remove(&key);
            // After a long transaction the table is large, which would cost the others cache misses.
            if self.0.is_empty() && self.0.capacity() > TABLE_LOCKS {
                self.0 = Table::default();
            }
        }
        (done, before, now)
    }

    /// How many locks there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

fn presence(lock: &Lock) -> Presence {
    Presence {
        is_there: !lock.is_unused(),
        is_exclusive: lock.is_exclusive(),
    }
}
