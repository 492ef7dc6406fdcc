//! Locks: on records, on gaps between key values, on values of unique keys, on files.
//!
//! A table in stripes. A lock has holders and a queue; who comes is served after those who wait
//! already, unless he holds the lock in a lesser mode. A transaction keeps its locks to its end
//! (two-phase locking), so a ring of waiters never dissolves by itself: [`deadlock`] finds it.

mod deadlock;
mod waiting;

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use concurve_latch::{Mutex, MutexGuard};
use hashbrown::hash_map::Entry;
use smallvec::SmallVec;

use crate::apart::Apart;
use crate::classes;
pub use crate::locks::waiting::{LOOK, Queued, WaitCell, Waker, next_look};
use crate::slots::Position;
use crate::table::{Hashing, Table};

/// Names under which a file can be locked: a session takes one, who wants the file alone takes all,
/// so that sessions on different CPUs do not meet at one name.
pub const FILE_PARTS: u64 = 16;

/// A stripe without locks gives its memory back if there is room in it for more than these.
const STRIPE_LOCKS: usize = 256;

/// Who holds locks: a session.
pub type Owner = u32;

/// What is locked. Names that are equal by a collision of hashes cost a needless wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LockName {
    file: u32,
    space: u32,
    id: u64,
}

impl LockName {
    /// A part of the whole file.
    pub fn file(file: u32, part: u64) -> Self {
        let id = part % FILE_PARTS;
        Self { file, space: 0, id }
    }

    pub fn record(file: u32, position: Position) -> Self {
        let id = position.number();
        Self { file, space: 1, id }
    }

    /// A value of a key without duplicates, whether a record has it or not.
    pub fn value(file: u32, key: usize, value: &[u8]) -> Self {
        let (space, id) = (2 + 2 * key as u32, hash(value));
        Self { file, space, id }
    }

    /// What is between an entry of a key and the one before it; `None` is the end.
    pub fn gap(file: u32, key: usize, entry: Option<&[u8]>) -> Self {
        let (space, id) = (3 + 2 * key as u32, entry.map_or(0, hash));
        Self { file, space, id }
    }

    pub fn is_file(&self) -> bool {
        self.space == 0
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// How a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Shared = 1,
    Exclusive = 2,
}

/// The modes in which one owner holds a lock: who got it exclusive after shared has both.
#[derive(Debug, Clone, Copy)]
struct Holder {
    owner: Owner,
    modes: u8,
}

#[derive(Debug)]
struct Waiter {
    owner: Owner,
    mode: Mode,
    cell: Arc<WaitCell>,
}

#[derive(Debug, Default)]
struct Lock {
    holders: SmallVec<[Holder; 2]>,
    queue: VecDeque<Waiter>,
}

/// What asking for a lock without waiting gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// The owner did not hold it, and does now.
    New,
    /// The owner held it already, maybe in a lesser mode.
    Held,
    /// Not now.
    Busy,
}

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

impl Holder {
    fn has(&self, mode: Mode) -> bool {
        self.modes & mode as u8 != 0
    }

    /// Whether another owner cannot have the lock in this mode.
    fn excludes(&self, mode: Mode) -> bool {
        mode == Mode::Exclusive || self.has(Mode::Exclusive)
    }
}

impl Lock {
    fn ask(&mut self, owner: Owner, mode: Mode) -> Asked {
        let own = self.holders.iter().find(|it| it.owner == owner);
        let held = own.is_some();
        if own.is_some_and(|it| it.has(mode)) {
            return Asked::Held;
        }
        // Who holds it exclusive may also say that he reads it.
        let is_first = held || self.queue.is_empty();
        if !is_first || !self.allows(owner, mode) {
            return Asked::Busy;
        }
        self.grant(owner, mode);
        if held { Asked::Held } else { Asked::New }
    }

    fn allows(&self, owner: Owner, mode: Mode) -> bool {
        let others = self.holders.iter().filter(|it| it.owner != owner);
        !others.into_iter().any(|it| it.excludes(mode))
    }

    fn grant(&mut self, owner: Owner, mode: Mode) {
        let modes = mode as u8;
        match self.holders.iter_mut().find(|it| it.owner == owner) {
            Some(own) => own.modes |= modes,
            None => self.holders.push(Holder { owner, modes }),
        }
    }

    fn is_unused(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty()
    }

    fn holds(&self, owner: Owner) -> bool {
        self.holders.iter().any(|it| it.owner == owner)
    }
}
