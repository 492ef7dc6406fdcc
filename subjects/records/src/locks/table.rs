//! The table of all locks, in stripes.

use std::hash::BuildHasher;

use concurve_latch::{Mutex, MutexGuard};
use crossbeam_utils::CachePadded;

use crate::classes;
use crate::locks::exclusive::ExclusiveCounts;
use crate::locks::lock::{Lock, LockOutcome, Mode, Owner, Waiter};
use crate::locks::name::LockName;
use crate::table::{Hashing, Table};

/// A stripe without locks frees its memory if its capacity is larger than this.
const STRIPE_LOCKS: usize = 256;

/// Which sessions have read a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// No session.
    Free,
    /// The asking session only.
    Own,
    /// Another session.
    Read,
}

/// The lock that each waiting owner waits for.
pub(super) type Waits = Table<Owner, LockName>;

pub(super) type Stripe = Table<LockName, Lock>;

/// A part of the table: its locks, and which of them are exclusive, in lines of their own.
#[derive(Debug)]
pub(super) struct StripeLatch {
    locks: Mutex<Stripe>,
    exclusives: ExclusiveCounts,
}

// One or two neighbouring cache lines, which CPUs fetch together.
const _: () = assert!(size_of::<StripeLatch>() <= 128);

impl StripeLatch {
    pub fn lock(&self) -> MutexGuard<'_, Stripe> {
        self.locks.lock()
    }
}

/// All locks.
pub struct LockTable {
    pub(super) stripes: Box<[CachePadded<StripeLatch>]>,
    /// The stripes that have the locks of a file.
    of_file: usize,
    hasher: Hashing,
    /// Locked after stripes.
    pub(super) waits: CachePadded<Mutex<Waits>>,
}

impl LockTable {
    /// A table with so many stripes for the locks of a file, and so many times that for different files:
    /// two powers of two.
    pub fn new(of_file: usize, files: usize) -> Self {
        let class = classes::locks();
        let stripe = |_| {
            CachePadded::new(StripeLatch {
                locks: class.mutex(Stripe::default()),
                exclusives: ExclusiveCounts::default(),
            })
        };
        Self {
            stripes: (0..of_file * files).map(stripe).collect(),
            of_file,
            hasher: Hashing::default(),
            waits: CachePadded::new(class.mutex(Waits::default())),
        }
    }

    pub(super) fn index(&self, name: &LockName) -> usize {
        let file = self.hasher.hash_one(name.file_number()) as usize >> 20;
        let of_name = self.hash(name) & (self.of_file - 1);
        (file * self.of_file + of_name) & (self.stripes.len() - 1)
    }

    fn hash(&self, name: &LockName) -> usize {
        self.hasher.hash_one(name) as usize >> 20
    }

    /// Where in its stripe exclusive locks of a name are counted.
    fn word(&self, name: &LockName) -> usize {
        self.hash(name) / self.of_file
    }

    pub(super) fn stripe(&self, name: &LockName) -> MutexGuard<'_, Stripe> {
        self.stripes[self.index(name)].lock()
    }

    /// Takes a lock if it is available now.
    pub fn try_lock(&self, owner: Owner, name: LockName, mode: Mode) -> LockOutcome {
        let mut stripe = self.stripe(&name);
        let lock = stripe.entry(name).or_default();
        self.change(&name, lock, |lock| lock.try_lock(owner, mode))
    }

    /// Changes the holders of a lock. To be called while the stripe is latched.
    pub(super) fn change<R>(
        &self,
        name: &LockName,
        lock: &mut Lock,
        change: impl FnOnce(&mut Lock) -> R,
    ) -> R {
        let before = lock.is_exclusive();
        let done = change(lock);
        let exclusives = &self.stripes[self.index(name)].exclusives;
        exclusives.note(self.word(name), before, lock.is_exclusive());
        done
    }

    /// Whether no session holds a lock exclusively, by one look without a latch. If it says no, the
    /// lock may be free all the same.
    #[inline]
    pub fn is_not_exclusive(&self, name: &LockName) -> bool {
        self.stripes[self.index(name)]
            .exclusives
            .is_none(self.word(name))
    }

    /// Which sessions have read a gap in which an owner inserts.
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

    /// Releases a lock, and grants it to waiters.
    pub fn release(&self, owner: Owner, name: LockName) {
        let mut stripe = self.stripe(&name);
        let Some(lock) = stripe.get_mut(&name) else {
            return;
        };
        self.change(&name, lock, |lock| {
            lock.holders.retain(|it| it.owner != owner)
        });
        self.serve(&name, lock);
        if lock.is_unused() {
            stripe.remove(&name);
            // After a long transaction the table is large, which would cost the others cache
            // misses.
            if stripe.is_empty() && stripe.capacity() > STRIPE_LOCKS {
                *stripe = Stripe::default();
            }
        }
    }

    /// Grants the lock to waiters, in the order of the queue. To be called while the stripe is
    /// latched.
    pub(super) fn serve(&self, name: &LockName, lock: &mut Lock) {
        while let Some(first) = lock.queue.front() {
            if !lock.allows(first.owner, first.mode) {
                break;
            }
            let Waiter { owner, mode, cell } = lock.queue.pop_front().expect("it has a front");
            // Before the owner learns of it.
            self.change(name, lock, |lock| lock.grant(owner, mode));
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
