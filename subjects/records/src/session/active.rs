//! A session at work: what it holds that others may wait for, and how it is given back.

use concurve_latch::MutexGuard;

use crate::locks::LockName;
use crate::registry::Place;
use crate::session::FileHandle;
use crate::session::parking::Parked;
use crate::session::transaction::Transaction;
use crate::shared::Shared;

/// What a session holds that others may wait for. If its engine dies, another one gives it back.
#[derive(Default)]
pub struct Held {
    pub(super) transaction: Transaction,
    /// Locks that reads with a bias took outside of transactions.
    pub(super) kept: Vec<KeptLock>,
    /// It has a place at work, and gives it up where it sleeps.
    pub(super) is_at_work: bool,
    /// The lock that it is in a queue for.
    pub(super) parked: Option<Parked>,
    /// Its commit is in the log up to this byte, and maybe not on the disk.
    pub(super) unconfirmed: Option<u64>,
}

/// A session while it does something: what it holds is latched. Nobody else wants that latch; but an
/// engine that dies while it holds one has left something half done.
pub(super) struct Active<'a> {
    pub(super) shared: &'a Shared,
    pub(super) place: &'a Place,
    pub(super) held: MutexGuard<'a, Held>,
}

/// A lock that a session keeps until it gives it back.
pub(super) struct KeptLock {
    pub opened: FileHandle,
    /// The file's number.
    pub file: u32,
    pub name: LockName,
    pub is_single: bool,
}

impl<'a> Active<'a> {
    pub(super) fn new(shared: &'a Shared, place: &'a Place) -> Self {
        Self {
            shared,
            place,
            held: place.held.lock(),
        }
    }

    pub(super) fn in_transaction(&self) -> bool {
        self.held.transaction.kind.is_some()
    }

    /// Gives back all that the session holds. One that ends in the middle of a transaction, or of one
    /// operation, has not committed.
    pub(super) fn end(&mut self) {
        self.leave_queue();
        let _ = self.confirm();
        self.place
            .counts
            .aborts
            .add(u64::from(self.in_transaction()));
        let _ = self.roll_back();
        let owner = self.place.number;
        for kept in std::mem::take(&mut self.held.kept) {
            self.shared.locks.release(owner, kept.name);
        }
    }
}

impl Shared {
    /// Ends the sessions of an engine that is dead, and was not in an operation of any of them.
    pub fn end_sessions_of(&self, engine: u32) {
        for place in self.sessions.of_engine(engine) {
            Active::new(self, &place).end();
            self.sessions.leave(place.number);
        }
    }
}
