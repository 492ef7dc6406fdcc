//! Waiting for a lock.

use std::sync::Arc;
use std::time::Duration;

use concurve_latch::{Condvar, Mutex};

use crate::classes;
use crate::locks::{Asked, LockName, LockTable, Mode, Owner, Stripe, Waiter, Waits};
use crate::status::Status;

/// Who waits longer looks for a ring of waiters: rings are rare, and looking stops all others. Whoever
/// closed a ring finds it at his first look; he looks again after twice that time, and so on, for
/// nothing but safety.
pub const LOOK: Duration = Duration::from_millis(10);
const LOOK_MAX: Duration = Duration::from_secs(1);

/// When to look again.
pub fn next_look(last: Duration) -> Duration {
    (2 * last).min(LOOK_MAX)
}

/// What is called when a lock is granted to a session that does not sleep for it.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// Where a session waits.
pub struct WaitCell {
    is_granted: Mutex<bool>,
    changed: Condvar,
    waker: Option<Waker>,
}

impl std::fmt::Debug for WaitCell {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.write_str("WaitCell")
    }
}

impl WaitCell {
    /// A cell whose owner sleeps in it, or is called.
    pub fn new(waker: Option<Waker>) -> Self {
        Self {
            is_granted: classes::locks().mutex(false),
            changed: Condvar::new(),
            waker,
        }
    }

    pub fn grant(&self) {
        *self.is_granted.lock() = true;
        match &self.waker {
            Some(waker) => waker(),
            None => self.changed.notify_one(),
        }
    }

    pub fn is_granted(&self) -> bool {
        *self.is_granted.lock()
    }

    fn is_granted_within(&self, time: Duration) -> bool {
        let mut is_granted = self.is_granted.lock();
        let waits = |is_granted: &mut bool| !*is_granted;
        !self.changed.wait_while_for(&mut is_granted, waits, time)
    }

    fn reset(&self) {
        *self.is_granted.lock() = false;
    }
}

/// What queueing up gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queued {
    Granted(Asked),
    /// Not yet; what it will be once the cell says that it is granted.
    Waits(Asked),
}

impl LockTable {
    /// Takes a lock, after those who hold it and those who wait for it.
    ///
    /// To be called without latches. `cell` is the owner's own.
    ///
    /// # Errors
    /// [`Status::Deadlock`] if this owner and others would wait for one another for ever.
    pub fn wait(
        &self,
        owner: Owner,
        name: LockName,
        mode: Mode,
        cell: &Arc<WaitCell>,
    ) -> Result<Asked, Status> {
        let granted = match self.queue_up(owner, name, mode, cell) {
            Queued::Granted(asked) => return Ok(asked),
            Queued::Waits(granted) => granted,
        };
        let mut look = LOOK;
        while !cell.is_granted_within(look) {
            if self.give_up_in_ring(owner, name) {
                return Err(Status::Deadlock);
            }
            look = next_look(look);
        }
        Ok(granted)
    }

    /// Takes a lock, or a place in the queue for it, and does not sleep. Who waits longer than
    /// [`LOOK`] must ask [`LockTable::give_up_in_ring`].
    pub fn queue_up(
        &self,
        owner: Owner,
        name: LockName,
        mode: Mode,
        cell: &Arc<WaitCell>,
    ) -> Queued {
        let mut stripe = self.stripe(&name);
        let lock = stripe.entry(name).or_default();
        match lock.ask(owner, mode) {
            Asked::Busy => {}
            asked => return Queued::Granted(asked),
        }
        cell.reset();
        let held = lock.holds(owner);
        let waiter = Waiter {
            owner,
            mode,
            cell: Arc::clone(cell),
        };
        // Nobody behind a holder can be served before him.
        let conversions = lock.queue.iter().take_while(|it| lock.holds(it.owner));
        let at = if held {
            conversions.count()
        } else {
            lock.queue.len()
        };
        lock.queue.insert(at, waiter);
        self.waits.lock().insert(owner, name);
        Queued::Waits(if held { Asked::Held } else { Asked::New })
    }

    /// Leaves the queue, or gives back what was granted meanwhile: the owner ends.
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

    /// Leaves the queue if the owner is in a ring of waiters.
    pub fn give_up_in_ring(&self, owner: Owner, name: LockName) -> bool {
        let mut stripes: Vec<_> = self.stripes.iter().map(|it| it.lock()).collect();
        let waits = self.waits.lock();
        // Granted meanwhile.
        if !waits.contains_key(&owner) || !self.is_in_ring(owner, &stripes, &waits) {
            return false;
        }
        drop(waits);
        let stripe = &mut stripes[self.index(&name)];
        self.leave(stripe, owner, name);
        true
    }

    fn leave(&self, stripe: &mut Stripe, owner: Owner, name: LockName) {
        self.waits.lock().remove(&owner);
        let lock = stripe.get_mut(&name).expect("who waits is in a queue");
        lock.queue.retain(|it| it.owner != owner);
        self.serve(lock);
        if lock.is_unused() {
            stripe.remove(&name);
        }
    }

    /// Who waits for what.
    pub(super) fn lock_of<'a>(
        &self,
        owner: Owner,
        stripes: &'a [impl std::ops::Deref<Target = Stripe>],
        waits: &Waits,
    ) -> Option<&'a super::Lock> {
        let name = waits.get(&owner)?;
        stripes[self.index(name)].get(name)
    }
}
