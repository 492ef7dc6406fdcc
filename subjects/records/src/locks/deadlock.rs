//! Deadlock detection: cycles in the wait-for graph.
//!
//! The graph is not stored: it is derived from the lock table, with all stripes latched, when an
//! owner has waited for long. An owner waits for one lock at a time: for its holders whose modes
//! exclude its own, and for all owners before it in the queue. The last waiter closes a cycle, and
//! checks after the others began to wait; so it is enough that each waiter searches from itself.

use std::ops::Deref;

use hashbrown::HashSet;

use crate::locks::lock::{Lock, Owner};
use crate::locks::stripe::Stripe;
use crate::locks::table::{LockTable, Waits};

impl LockTable {
    /// Whether an owner waits for itself through others.
    pub(super) fn is_in_cycle(
        &self,
        owner: Owner,
        stripes: &[impl Deref<Target = Stripe>],
        waits: &Waits,
    ) -> bool {
        let mut seen = HashSet::new();
        let mut open = vec![owner];
        while let Some(next) = open.pop() {
            let Some(lock) = self.lock_of(next, stripes, waits) else {
                continue;
            };
            for other in lock.before(next) {
                if other == owner {
                    return true;
                }
                if seen.insert(other) {
                    open.push(other);
                }
            }
        }
        false
    }
}

impl Lock {
    /// The owners that a waiter waits for.
    fn before(&self, owner: Owner) -> Vec<Owner> {
        let at = self.queue.iter().position(|it| it.owner == owner);
        let at = at.expect("a waiter is in the queue");
        let mode = self.queue[at].mode;
        let holders = self.holders.iter();
        let holders = holders.filter(|it| it.owner != owner && it.excludes(mode));
        // All before it: even an owner with which it could share the lock is served first.
        let waiters = self.queue.iter().take(at);
        holders
            .map(|it| it.owner)
            .chain(waiters.map(|it| it.owner))
            .collect()
    }
}
