//! One operation: retried while it must wait, and undone as a whole if it fails.

use crate::error::Stop;
use crate::held::{Held, HeldLock, KeptLock, Wanted};
use crate::locks::LockName;
use crate::log::buffer_of;
use crate::session::active::Active;
use crate::session::work::Work;
use crate::session::{FileHandle, LocalState, LockBias};
use crate::status::Status;

impl Active<'_> {
    /// Does an operation on a file, in the session's transaction or in one of its own.
    pub(super) fn statement(
        &mut self,
        local: &mut LocalState,
        file: FileHandle,
        bias: LockBias,
        operation: impl FnMut(&mut Work) -> Result<(), Stop>,
    ) -> Result<(), Status> {
        self.confirm()?;
        self.shared.check()?;
        local.file(file)?;
        self.held.check_memory()?;
        let done = self.try_until_done(local, file, bias, operation);
        if self.in_transaction() || done == Err(Status::Waiting) {
            return done;
        }
        match done {
            Ok(()) => {
                self.keep_biased(local, file, bias);
                self.commit(local.parks())
            }
            Err(status) => self.roll_back().and(Err(status)),
        }
    }

    fn try_until_done(
        &mut self,
        local: &mut LocalState,
        file: FileHandle,
        bias: LockBias,
        mut operation: impl FnMut(&mut Work) -> Result<(), Stop>,
    ) -> Result<(), Status> {
        self.resume(&local.cell)?;
        loop {
            let first = self.held.transaction.changes.len();
            let stopped = {
                let mut work = Work::new(self, local, file);
                let _latch = work.shared.latch_operation(Some(work.file));
                operation(&mut work)
            };
            let Err(stop) = stopped else {
                return self.limit_log_buffer();
            };
            self.undo_statement(first)?;
            match stop {
                Stop::Status(status) => return Err(status),
                Stop::Fault(fault) => return Err(self.shared.fail(fault)),
                Stop::Wait { name, .. } if !bias.waits() => return Err(name.in_use()),
                Stop::Wait { name, mode, keep } => self.wait(local, Wanted { name, mode, keep })?,
            }
            // The engine may have failed while this session waited.
            self.shared.check()?;
        }
    }

    fn undo_statement(&mut self, first: usize) -> Result<(), Status> {
        let transaction = &mut self.held.transaction;
        if transaction.changes.len() == first {
            return Ok(());
        }
        transaction.needs_purge = true;
        // What is undone stands before its undo in the log.
        self.shared
            .store
            .log
            .publish(buffer_of(self.registration.number));
        let undone = self.shared.undo(&transaction.changes, first);
        undone.map_err(|fault| self.shared.stop(fault))
    }

    /// Writes the log from time to time, so that a long transaction does not fill its buffer.
    fn limit_log_buffer(&self) -> Result<(), Status> {
        let changes = self.held.transaction.changes.len();
        if changes == 0 || changes & 0xff != 0 {
            return Ok(());
        }
        let written = self.shared.store.log.flush_if_large();
        written.map_err(|fault| self.shared.fail(fault))
    }

    /// Outside of transactions, a lock of a read with a bias outlives the read.
    fn keep_biased(&mut self, local: &LocalState, opened: FileHandle, bias: LockBias) {
        if bias == LockBias::None {
            return;
        }
        let open = &local.files[opened.0];
        let Some(current) = &open.current else {
            return;
        };
        let file = open.file.id;
        let name = LockName::record(file, current.position());
        if bias.is_single() {
            self.release_kept(local, opened, |kept| kept.is_single && kept.name != name);
        }
        let Held {
            transaction, kept, ..
        } = &mut *self.held;
        if kept.iter().any(|it| it.name == name) {
            return;
        }
        // The lock on the part of the file stays with that on the record.
        kept.extend(transaction.locks.drain(..).map(|lock| KeptLock {
            opened,
            file,
            name: lock.name,
            mode: lock.mode,
            is_single: bias.is_single(),
        }));
    }

    /// Releases locks on a file's records, and that on the part of the file with the last one. In a
    /// transaction they are kept to its end: the transaction may rely on them.
    pub(super) fn release_kept(
        &mut self,
        local: &LocalState,
        opened: FileHandle,
        which: impl Fn(&KeptLock) -> bool,
    ) {
        if self.held.kept.is_empty() {
            return;
        }
        let is_kept_longer = self.in_transaction() || self.held.unconfirmed.is_some();
        let Held {
            transaction, kept, ..
        } = &mut *self.held;
        let is_released = |it: &KeptLock| it.opened == opened && !it.name.is_file() && which(it);
        let mut released: Vec<KeptLock> = kept.extract_if(.., |it| is_released(it)).collect();
        let file = local.files[opened.0].file.id;
        let of_file = |it: &KeptLock| it.file == file;
        if !kept.iter().any(|it| of_file(it) && !it.name.is_file()) {
            released.extend(kept.extract_if(.., |it| of_file(it)));
        }
        for KeptLock { name, mode, .. } in released {
            if is_kept_longer {
                transaction.locks.push(HeldLock { name, mode });
            } else {
                self.shared.locks.release(self.registration.number, name);
            }
        }
    }
}
