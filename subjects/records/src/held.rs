//! What a session holds that others may wait for. It lies in the session registry: if the session's
//! engine dies, another one releases it.

use std::time::Duration;

use smallvec::SmallVec;

use crate::changes::Changes;
use crate::locks::{LockName, LockOutcome, Mode};
use crate::parameters::{FileHandle, TransactionKind};

#[derive(Default)]
pub struct Held {
    pub transaction: Transaction,
    /// Locks of reads with a bias outside of transactions.
    pub kept: Vec<KeptLock>,
    /// The lock in whose queue it is.
    pub parked: Option<Parked>,
    /// How many changes and locks it had when memory was looked at.
    pub looked_at: usize,
    /// Its commit is in the log up to this byte, and maybe not on the disk.
    pub unconfirmed: Option<u64>,
}

/// What a session holds and has changed since its transaction began.
#[derive(Default)]
pub struct Transaction {
    /// [`SYSTEM`](crate::log::record::SYSTEM) until it changes something.
    pub id: u64,
    /// `None`: a single operation.
    pub kind: Option<TransactionKind>,
    pub changes: Changes,
    /// It leaves stale key entries or ghosts, whether it commits or not.
    pub needs_purge: bool,
    pub locks: Vec<HeldLock>,
    /// Files that it has locked, as a whole or in part.
    pub files: SmallVec<[u32; 8]>,
}

/// A lock that is held until the transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldLock {
    pub name: LockName,
    /// The mode in which it was taken last.
    pub mode: Mode,
}

/// So many of the locks that were taken last are looked through before the lock table is asked.
const RECENT: usize = 16;

impl Transaction {
    /// Whether it is known, without the lock table, that a lock is held in a mode.
    pub fn holds(&self, name: LockName, mode: Mode) -> bool {
        let wanted = HeldLock { name, mode };
        self.locks.iter().rev().take(RECENT).any(|it| *it == wanted)
    }

    /// Remembers a lock that was taken.
    pub fn keep(&mut self, outcome: LockOutcome, name: LockName, mode: Mode) {
        if outcome == LockOutcome::New {
            self.locks.push(HeldLock { name, mode });
        } else if let Some(lock) = self
            .locks
            .iter_mut()
            .rev()
            .take(RECENT)
            .find(|it| it.name == name)
        {
            lock.mode = mode;
        }
    }
}

/// A lock that a session keeps until it releases it.
pub struct KeptLock {
    pub opened: FileHandle,
    /// The number of the file.
    pub file: u32,
    pub name: LockName,
    pub mode: Mode,
    pub is_single: bool,
}

/// A lock that an operation needs.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    pub name: LockName,
    pub mode: Mode,
    /// Keep it until the transaction ends; otherwise it is enough that it was free.
    pub keep: bool,
}

/// A place in the queue of a lock.
#[derive(Debug, Clone, Copy)]
pub struct Parked {
    pub wanted: Wanted,
    /// The outcome once the lock is granted.
    pub granted: LockOutcome,
    /// When the session last checked for a deadlock, by the storage's clock.
    pub checked: Duration,
    /// It checks again after this time.
    pub interval: Duration,
}
