//! Waiting for a lock.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::locks::lock::{Lock, LockOutcome, Mode, Owner, Waiter};
use crate::locks::name::LockName;
use crate::locks::table::{LockTable, Stripe, Waits};
use crate::locks::wait_cell::WaitCell;
use crate::status::Status;

/// A waiter checks for a deadlock after this time: deadlocks are rare, and a check stops all other
/// sessions. The waiter that closed a cycle finds it at its first check. It checks again after
/// twice that time, and so on, only for safety.
pub const CHECK_INTERVAL: Duration = Duration::from_millis(10);
const CHECK_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// The interval until the next check.
pub fn next_interval(last: Duration) -> Duration {
    (2 * last).min(CHECK_INTERVAL_MAX)
}

/// The result of [`LockTable::queue_up`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queued {
    Granted(LockOutcome),
    /// Not yet; the outcome once the cell reports that the lock is granted.
    Waits(LockOutcome),
}

impl LockTable {
    /// Takes a lock, after its holders and the owners that wait for it already.
    ///
    /// To be called without latches. `cell` is that of the owner.
    ///
    /// # Errors
    /// [`Status::Deadlock`] if this owner and others would wait for one another for ever.
    pub fn wait(
        &self,
        owner: Owner,
        name: LockName,
        mode: Mode,
        cell: &Arc<WaitCell>,
    ) -> Result<LockOutcome, Status> {
        let granted = match self.queue_up(owner, name, mode, cell) {
            Queued::Granted(outcome) => return Ok(outcome),
            Queued::Waits(granted) => granted,
        };
        let mut interval = CHECK_INTERVAL;
        while !cell.is_granted_within(interval) {
            if self.give_up_if_deadlocked(owner, name) {
                return Err(Status::Deadlock);
            }
            interval = next_interval(interval);
        }
        Ok(granted)
    }

    /// Takes a lock, or a place in its queue, and does not sleep. An owner that waits longer than
    /// [`CHECK_INTERVAL`] must call [`LockTable::give_up_if_deadlocked`].
    pub fn queue_up(
        &self,
        owner: Owner,
        name: LockName,
        mode: Mode,
        cell: &Arc<WaitCell>,
    ) -> Queued {
        let mut stripe = self.stripe(&name);
        let lock = stripe.entry(name).or_default();
        match self.change(&name, lock, |lock| lock.try_lock(owner, mode)) {
            LockOutcome::Busy => {}
            outcome => return Queued::Granted(outcome),
        }
        cell.reset();
        let held = lock.holds(owner);
        let waiter = Waiter {
            owner,
            mode,
            cell: Arc::clone(cell),
        };
        // An owner that holds the lock already comes before all that do not: they could not be
        // served before it.
        let conversions = lock.queue.iter().take_while(|it| lock.holds(it.owner));
        let at = if held {
            conversions.count()
        } else {
            lock.queue.len()
        };
        lock.queue.insert(at, waiter);
        self.waits.lock().insert(owner, name);
        Queued::Waits(if held {
            LockOutcome::Held
        } else {
            LockOutcome::New
        })
    }

    /// Leaves the queue, or releases the lock if it was granted in the meantime.
    pub fn give_up(&self, owner: Owner, name: LockName) {
        {
            let mut stripe = self.stripe(&name);
            let waits = self.waits.lock().contains_key(&owner);
            if waits {
                return self.leave(&mut stripe, owner, name);
            }
        }
        self.release(owner, name);
    }

    /// Leaves the queue if the owner is part of a deadlock.
    pub fn give_up_if_deadlocked(&self, owner: Owner, name: LockName) -> bool {
        let mut stripes: Vec<_> = self.stripes.iter().map(|it| it.lock()).collect();
        let waits = self.waits.lock();
        // The lock may have been granted in the meantime.
        if !waits.contains_key(&owner) || !self.is_in_cycle(owner, &stripes, &waits) {
            return false;
        }
        drop(waits);
        let stripe = &mut stripes[self.index(&name)];
        self.leave(stripe, owner, name);
        true
    }

    fn leave(&self, stripe: &mut Stripe, owner: Owner, name: LockName) {
        self.waits.lock().remove(&owner);
        let lock = stripe.get_mut(&name).expect("a waiter is in a queue");
        lock.queue.retain(|it| it.owner != owner);
        self.serve(&name, lock);
        if lock.is_unused() {
            stripe.remove(&name);
        }
    }

    /// The lock that an owner waits for.
    pub(super) fn lock_of<'a>(
        &self,
        owner: Owner,
        stripes: &'a [impl Deref<Target = Stripe>],
        waits: &Waits,
    ) -> Option<&'a Lock> {
        let name = waits.get(&owner)?;
        stripes[self.index(name)].get(name)
    }
}
