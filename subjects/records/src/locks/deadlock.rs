//! Rings of waiters: a cycle in the graph of who waits for whom.
//!
//! The graph is not kept: it is read off the lock table, all of it held, when somebody has waited
//! for long. An owner waits for one lock at a time, so for its holders and for those before him in
//! its queue, as far as their modes exclude his. A ring is closed by its last waiter, who looks
//! after the others began to wait; so looking from oneself is enough.

use std::ops::Deref;

use hashbrown::HashSet;

use crate::locks::{Lock, LockTable, Owner, Stripe, Waits};

impl LockTable {
    /// Whether an owner waits for himself, by way of others.
    pub(super) fn is_in_ring(
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
    /// Whom a waiter waits for.
    fn before(&self, owner: Owner) -> Vec<Owner> {
        let at = self.queue.iter().position(|it| it.owner == owner);
        let at = at.expect("who waits is in the queue");
        let mode = self.queue[at].mode;
        let holders = self.holders.iter();
        let holders = holders.filter(|it| it.owner != owner && it.excludes(mode));
        // All before him: even one with whom he could share is served first.
        let waiters = self.queue.iter().take(at);
        holders
            .map(|it| it.owner)
            .chain(waiters.map(|it| it.owner))
            .collect()
    }
}
