//! Begin, end and abort of transactions.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::thread;

use crate::error::Fault;
use crate::held::Transaction;
use crate::log::buffer_of;
use crate::log::record::{Record, SYSTEM};
use crate::registry::Registration;
use crate::session::active::Active;
use crate::session::{LocalState, Session, TransactionKind, Waiting};
use crate::shared::Shared;
use crate::status::Status;

/// After so many transactions a session lets others run that are admitted, where more are there than CPUs.
const TURN: u64 = 64;

impl Session {
    pub fn in_transaction(&self) -> bool {
        self.active().in_transaction()
    }

    /// Operations 19 and 1019: begins a transaction.
    pub fn begin(&mut self, kind: TransactionKind) -> Result<(), Status> {
        let (mut active, local) = self.active_and_local();
        active.begin(local, kind)
    }

    /// Operation 20: commits the transaction, as durably as the engine's options say.
    ///
    /// # Errors
    /// If the log could not be written, whether it is committed is only known after the next start.
    pub fn end(&mut self) -> Result<(), Status> {
        let (mut active, local) = self.active_and_local();
        if !active.in_transaction() {
            return Err(Status::NoTransaction);
        }
        active.commit(local.parks())
    }

    /// Operation 21: undoes the transaction. The session loses its positions in all files: the
    /// records that it read may no longer exist.
    pub fn abort(&mut self) -> Result<(), Status> {
        let (mut active, local) = self.active_and_local();
        if !active.in_transaction() {
            return Err(Status::NoTransaction);
        }
        active.leave_queue();
        for open in &mut local.files {
            open.current = None;
        }
        active.registration.counts.aborts.add(1);
        active.roll_back()
    }
}

impl Active<'_> {
    fn begin(&mut self, local: &LocalState, kind: TransactionKind) -> Result<(), Status> {
        self.confirm()?;
        self.shared.check()?;
        if self.in_transaction() {
            return Err(Status::TransactionActive);
        }
        let is_needed = self
            .shared
            .admission
            .is_needed(self.shared.sessions.count());
        if let (Waiting::Sleeps, true) = (&local.waiting, is_needed) {
            let (admission, sessions) = (&self.shared.admission, &self.shared.sessions);
            admission.enter(&self.registration.slot, || sessions.take_kept_slot());
        }
        let _latch = self.shared.latch_operation(None);
        self.held.transaction.kind = Some(kind);
        self.registration.counts.begun.add(1);
        Ok(())
    }

    /// With `parks`, the commit is made durable later, by [`Session::confirm`].
    pub(super) fn commit(&mut self, parks: bool) -> Result<(), Status> {
        let checked = self.shared.check();
        if self.held.transaction.id == SYSTEM || checked.is_err() {
            self.release_transaction();
            return checked;
        }
        let lsn = log_commit(self.shared, &self.held.transaction, self.registration);
        if parks {
            self.held.transaction.kind = None;
            self.held.unconfirmed = Some(lsn);
            return Ok(());
        }
        self.finish_commit(lsn)
    }

    /// Makes the commit durable that ends at this byte of the log, and releases the locks.
    pub(super) fn finish_commit(&mut self, lsn: u64) -> Result<(), Status> {
        let done = self.shared.check().and_then(|()| {
            let finished =
                finish_commit(self.shared, &self.held.transaction, self.registration, lsn);
            finished.map_err(|fault| self.shared.fail(fault))
        });
        self.release_transaction();
        self.registration
            .counts
            .commits
            .add(u64::from(done.is_ok()));
        done
    }

    pub(super) fn roll_back(&mut self) -> Result<(), Status> {
        let done = self.shared.check().and_then(|()| {
            let undone = roll_back(self.shared, &self.held.transaction, self.registration);
            undone.map_err(|fault| self.shared.stop(fault))
        });
        self.release_transaction();
        done
    }

    fn release_transaction(&mut self) {
        self.release_locks();
        // Otherwise the kernel takes the CPU for them, mostly in the middle of a transaction.
        let has_had_turn = self.registration.counts.begun.now().is_multiple_of(TURN);
        let shared = self.shared;
        if has_had_turn && shared.admission.is_needed(shared.sessions.count()) {
            thread::yield_now();
        }
    }

    fn release_locks(&mut self) {
        let transaction = &mut self.held.transaction;
        let _latch = self.shared.latch_operation(None);
        for lock in transaction.locks.drain(..) {
            self.shared
                .locks
                .release(self.registration.number, lock.name);
        }
        transaction.id = SYSTEM;
        transaction.kind = None;
        transaction.changes.clear();
        transaction.needs_purge = false;
        transaction.files.clear();
        self.shared.admission.leave(&self.registration.slot);
    }
}

/// Appends what the session has gathered and the commit record to the log; returns the end of that.
fn log_commit(shared: &Shared, transaction: &Transaction, registration: &Registration) -> u64 {
    let record = Record::Commit {
        transaction: transaction.id,
        needs_purge: transaction.needs_purge,
    };
    let _latch = shared.latch_operation(None);
    let lsn = shared
        .store
        .log
        .append_last(buffer_of(registration.number), &record);
    registration.last_commit.store(lsn, Relaxed);
    lsn
}

fn finish_commit(
    shared: &Shared,
    transaction: &Transaction,
    registration: &Registration,
    lsn: u64,
) -> Result<(), Fault> {
    shared
        .store
        .log
        .make_durable(lsn, shared.options.durability)?;
    if transaction.needs_purge {
        shared.purge(transaction.id, &transaction.changes)?;
    }
    registration.first_lsn.store(u64::MAX, SeqCst);
    shared.log_is_at(lsn);
    Ok(())
}

fn roll_back(
    shared: &Shared,
    transaction: &Transaction,
    registration: &Registration,
) -> Result<(), Fault> {
    if transaction.id == SYSTEM {
        return Ok(());
    }
    // What is undone stands before its undo in the log.
    shared.store.log.publish(buffer_of(registration.number));
    shared.undo(&transaction.changes, 0)?;
    shared.purge(transaction.id, &transaction.changes)?;
    registration.first_lsn.store(u64::MAX, SeqCst);
    Ok(())
}
