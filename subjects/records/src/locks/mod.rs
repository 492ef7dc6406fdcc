//! Locks: on records, on gaps between key values, on values of unique keys, on files.
//!
//! A table in stripes. A lock has holders and a queue; who comes is served after those who wait
//! already, unless he holds the lock in a lesser mode. A transaction keeps its locks to its end
//! (two-phase locking), so a ring of waiters never dissolves by itself: [`deadlock`] finds it.

mod deadlock;
mod lock;
mod name;
mod waiting;

use std::hash::BuildHasher;

use concurve_latch::{Mutex, MutexGuard};
use hashbrown::hash_map::Entry;

use crate::apart::Apart;
use crate::classes;
pub use crate::locks::lock::{Asked, Mode};
use crate::locks::lock::{Holder, Lock, Waiter};
pub use crate::locks::name::{FILE_PARTS, LockName};
pub use crate::locks::waiting::{LOOK, Queued, WaitCell, Waker, next_look};
use crate::table::{Hashing, Table};

/// A stripe without locks gives its memory back if there is room in it for more than these.
const STRIPE_LOCKS: usize = 256;

/// Who holds locks: a session.
pub type Owner = u32;

/// What a look at a gap gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// Nobody has read it.
    Free,
    /// The owner himself has read it.
    Own,
    /// Another one has read it.
    Read,
}

type Waits = Table<Owner, LockName>;

type Stripe = Table<LockName, Lock>;

/// All locks.
pub struct LockTable {
    stripes: Box<[Apart<Mutex<Stripe>>]>,
    hasher: Hashing,
    /// Who waits for what. Locked after stripes.
    waits: Mutex<Waits>,
}

impl LockTable {
    /// A table of that many stripes: a power of two.
    pub fn new(stripes: usize) -> Self {
        let class = classes::locks();
        let stripe = |_| Apart(class.mutex(Stripe::default()));
        Self {
            stripes: (0..stripes).map(stripe).collect(),
            hasher: Hashing::default(),
            waits: class.mutex(Waits::default()),
        }
    }

    fn index(&self, name: &LockName) -> usize {
        (self.hasher.hash_one(name) as usize >> 20) & (self.stripes.len() - 1)
    }

    fn stripe(&self, name: &LockName) -> MutexGuard<'_, Stripe> {
        self.stripes[self.index(name)].lock()
    }

    /// Takes a lock if it can be had now.
    pub fn ask(&self, owner: Owner, name: LockName, mode: Mode) -> Asked {
        match self.stripe(&name).entry(name) {
            Entry::Vacant(place) => {
                let modes = mode as u8;
                let mut lock = Lock::default();
                lock.holders.push(Holder { owner, modes });
                place.insert(lock);
                Asked::New
            }
            Entry::Occupied(mut place) => place.get_mut().ask(owner, mode),
        }
    }

    /// Who has read a gap that an owner wants to fill.
    pub fn gap(&self, owner: Owner, name: LockName) -> Gap {
        let stripe = self.stripe(&name);
        let Some(lock) = stripe.get(&name) else {
            return Gap::Free;
        };
        let readers = || lock.holders.iter().filter(|it| it.has(Mode::Shared));
        if readers().any(|it| it.owner != owner) {
            Gap::Read
        } else if readers().any(|it| it.owner == owner) {
            Gap::Own
        } else {
            Gap::Free
        }
    }

    /// Gives a lock back, and serves those who wait for it.
    pub fn release(&self, owner: Owner, name: LockName) {
        let mut stripe = self.stripe(&name);
        let Some(lock) = stripe.get_mut(&name) else {
            return;
        };
        lock.holders.retain(|it| it.owner != owner);
        self.serve(lock);
        if lock.is_unused() {
            stripe.remove(&name);
            // A long transaction has made the table large, and the others would pay for it with
            // misses of the CPU's caches.
            if stripe.is_empty() && stripe.capacity() > STRIPE_LOCKS {
                *stripe = Stripe::default();
            }
        }
    }

    /// Grants what can be granted, in turn. To be called while the stripe is held.
    fn serve(&self, lock: &mut Lock) {
        while let Some(first) = lock.queue.front() {
            if !lock.allows(first.owner, first.mode) {
                break;
            }
            let Waiter { owner, mode, cell } = lock.queue.pop_front().expect("it has a front");
            lock.grant(owner, mode);
            self.waits.lock().remove(&owner);
            cell.grant();
        }
    }

    /// How many owners wait.
    pub fn waiting(&self) -> usize {
        self.waits.lock().len()
    }

    /// How many locks are held or waited for.
    pub fn count(&self) -> usize {
        let stripes = self.stripes.iter();
        stripes.map(|it| it.lock().len()).sum()
    }
}
