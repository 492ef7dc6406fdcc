//! Waiting for a lock.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::locks::lock::{Lock, LockOutcome, Mode, Owner, Waiter};
use crate::locks::name::LockName;
use crate::locks::stripe::Stripe;
use crate::locks::table::{LockTable, Waits, serve};
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
    /// Takes a lock as soon as no other owner has it as a light one, within so many looks. So nobody who
    /// waits for it is overtaken.
    pub fn try_for_a_while(
        &self,
        owner: Owner,
        name: LockName,
        mode: Mode,
        looks: u32,
    ) -> LockOutcome {
        let place = self.place(&name);
        for _ in 0..looks {
            if !self.is_light_of_another(place, owner) {
                return self.try_lock(owner, name, mode);
            }
            std::hint::spin_loop();
        }
        LockOutcome::Busy
    }

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
        let place = self.place(&name);
        match self.try_lock_light(place, owner, mode) {
            Some(LockOutcome::Busy) | None => {}
            Some(outcome) => return Queued::Granted(outcome),
        }
        let mut stripe = self.stripe(place);
        self.change(place, &mut stripe, |lock| {
            match lock.try_lock(owner, mode) {
                LockOutcome::Busy => {
                    cell.reset();
                    let cell = Arc::clone(cell);
                    let held = lock.queue_up(Waiter { owner, mode, cell });
                    self.waits.lock().insert(owner, name);
                    Queued::Waits(if held {
                        LockOutcome::Held
                    } else {
                        LockOutcome::New
                    })
                }
                outcome => Queued::Granted(outcome),
            }
        })
    }

    /// Leaves the queue, or releases the lock if it was granted in the meantime.
    pub fn give_up(&self, owner: Owner, name: LockName) {
        {
            let mut stripe = self.stripe(self.place(&name));
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
        let stripe = &mut stripes[self.place(&name).stripe];
        self.leave(stripe, owner, name);
        true
    }

    fn leave(&self, stripe: &mut Stripe, owner: Owner, name: LockName) {
        self.waits.lock().remove(&owner);
        let granted = self.change(self.place(&name), stripe, |lock| {
            lock.queue.retain(|it| it.owner != owner);
            serve(lock)
        });
        self.tell(granted);
    }

    /// The lock that an owner waits for.
    pub(super) fn lock_of<'a>(
        &self,
        owner: Owner,
        stripes: &'a [impl Deref<Target = Stripe>],
        waits: &Waits,
    ) -> Option<&'a Lock> {
        let place = self.place(waits.get(&owner)?);
        stripes[place.stripe].get(place.key())
    }
}
