//! Begin, End, Abort.

use std::sync::atomic::Ordering::SeqCst;

use smallvec::SmallVec;

use crate::changes::Changes;
use crate::error::Fault;
use crate::locks::LockName;
use crate::log::record::{Record, SYSTEM};
use crate::registry::Place;
use crate::session::active::Active;
use crate::session::{Held, Own, Session, TransactionKind, Waiting};
use crate::shared::Shared;
use crate::status::Status;

/// What a session holds and has changed since its transaction began.
#[derive(Default)]
pub(super) struct Transaction {
    /// [`SYSTEM`] until it changes something.
    pub id: u64,
    /// `None`: one operation is all of it.
    pub kind: Option<TransactionKind>,
    pub changes: Changes,
    /// Something dead is left behind, whether it commits or not.
    pub is_swept: bool,
    pub locks: Vec<LockName>,
    /// Files that it has entered.
    pub files: SmallVec<[u32; 8]>,
}

impl Session {
    pub fn in_transaction(&self) -> bool {
        self.active().in_transaction()
    }

    /// Operations 19 and 1019: begins a transaction.
    pub fn begin(&mut self, kind: TransactionKind) -> Result<(), Status> {
        let (mut active, own) = self.active_and_own();
        active.begin(own, kind)
    }

    /// Operation 20: ends the transaction; all of it is done and as durable as the engine makes it.
    ///
    /// # Errors
    /// If the log could not be written, it is not known whether it is done: the next start says.
    pub fn end(&mut self) -> Result<(), Status> {
        let (mut active, own) = self.active_and_own();
        if !active.in_transaction() {
            return Err(Status::NoTransaction);
        }
        active.commit(own.parks())
    }

    /// Operation 21: undoes the transaction. The session has no position in any file any more: what it
    /// read may not be there.
    pub fn abort(&mut self) -> Result<(), Status> {
        let (mut active, own) = self.active_and_own();
        if !active.in_transaction() {
            return Err(Status::NoTransaction);
        }
        active.leave_queue();
        for open in &mut own.files {
            open.current = None;
        }
        active.place.counts.aborts.add(1);
        active.roll_back()
    }
}

impl Active<'_> {
    fn begin(&mut self, own: &Own, kind: TransactionKind) -> Result<(), Status> {
        self.confirm()?;
        self.shared.check()?;
        if self.in_transaction() {
            return Err(Status::TransactionActive);
        }
        if let Waiting::Sleeps = own.waiting {
            self.shared.gate.enter();
            self.held.is_at_work = true;
        }
        let _turn = self.shared.turn(None);
        self.held.transaction.kind = Some(kind);
        self.place.counts.begun.add(1);
        Ok(())
    }

    /// With `parks`, what is committed is promised later.
    pub(super) fn commit(&mut self, parks: bool) -> Result<(), Status> {
        let checked = self.shared.check();
        if self.held.transaction.id == SYSTEM || checked.is_err() {
            self.release_transaction();
            return checked;
        }
        let lsn = log_commit(self.shared, &self.held.transaction);
        if parks {
            self.held.transaction.kind = None;
            self.held.unconfirmed = Some(lsn);
            return Ok(());
        }
        self.finish_commit(lsn)
    }

    /// What remains to be done when the commit is in the log up to a byte.
    pub(super) fn finish_commit(&mut self, lsn: u64) -> Result<(), Status> {
        let done = self.shared.check().and_then(|()| {
            let finished = finish_commit(self.shared, &self.held.transaction, self.place, lsn);
            finished.map_err(|fault| self.shared.fail(fault))
        });
        self.release_transaction();
        self.place.counts.commits.add(u64::from(done.is_ok()));
        done
    }

    pub(super) fn roll_back(&mut self) -> Result<(), Status> {
        let done = self.shared.check().and_then(|()| {
            let undone = roll_back(self.shared, &self.held.transaction, self.place);
            undone.map_err(|fault| self.shared.fail_for_good(fault))
        });
        self.release_transaction();
        done
    }

    fn release_transaction(&mut self) {
        let Held {
            transaction,
            is_at_work,
            ..
        } = &mut *self.held;
        let _turn = self.shared.turn(None);
        for name in transaction.locks.drain(..) {
            self.shared.locks.release(self.place.number, name);
        }
        transaction.id = SYSTEM;
        transaction.kind = None;
        transaction.changes.clear();
        transaction.is_swept = false;
        transaction.files.clear();
        if std::mem::take(is_at_work) {
            self.shared.gate.leave();
        }
    }
}

/// Appends the end of the transaction to the log; returns where that ends.
fn log_commit(shared: &Shared, transaction: &Transaction) -> u64 {
    let record = Record::Commit {
        transaction: transaction.id,
        swept: transaction.is_swept,
    };
    let _turn = shared.turn(None);
    shared.store.log.append(&record)
}

fn finish_commit(
    shared: &Shared,
    transaction: &Transaction,
    place: &Place,
    lsn: u64,
) -> Result<(), Fault> {
    shared
        .store
        .log
        .make_durable(lsn, shared.settings.durability)?;
    if transaction.is_swept {
        shared.settle(transaction.id, &transaction.changes)?;
    }
    place.first_lsn.store(u64::MAX, SeqCst);
    shared.log_is_at(lsn);
    Ok(())
}

fn roll_back(shared: &Shared, transaction: &Transaction, place: &Place) -> Result<(), Fault> {
    if transaction.id == SYSTEM {
        return Ok(());
    }
    shared.undo(&transaction.changes, 0)?;
    shared.settle(transaction.id, &transaction.changes)?;
    place.first_lsn.store(u64::MAX, SeqCst);
    Ok(())
}
