//! One operation: as often as it must be tried, and nothing of it if it fails.

use crate::error::Stop;
use crate::locks::LockName;
use crate::session::active::{Active, KeptLock};
use crate::session::parking::Wanted;
use crate::session::work::Work;
use crate::session::{FileHandle, Held, LockBias, Own};
use crate::status::Status;

impl Active<'_> {
    /// Does an operation on a file, in the transaction or as one of its own.
    pub(super) fn statement(
        &mut self,
        own: &mut Own,
        file: FileHandle,
        bias: LockBias,
        operation: impl FnMut(&mut Work) -> Result<(), Stop>,
    ) -> Result<(), Status> {
        self.confirm()?;
        self.shared.check()?;
        own.file(file)?;
        let done = self.try_until_done(own, file, bias, operation);
        if self.in_transaction() || done == Err(Status::Waiting) {
            return done;
        }
        match done {
            Ok(()) => {
                self.keep_biased(own, file, bias);
                self.commit(own.parks())
            }
            Err(status) => self.roll_back().and(Err(status)),
        }
    }

    fn try_until_done(
        &mut self,
        own: &mut Own,
        file: FileHandle,
        bias: LockBias,
        mut operation: impl FnMut(&mut Work) -> Result<(), Stop>,
    ) -> Result<(), Status> {
        self.resume(&own.cell)?;
        loop {
            let first = self.held.transaction.changes.len();
            let stopped = {
                let mut work = Work::new(self, own, file);
                let _turn = work.shared.turn(Some(work.file));
                operation(&mut work)
            };
            let Err(stop) = stopped else {
                return self.relieve();
            };
            self.undo_statement(first)?;
            match stop {
                Stop::Status(status) => return Err(status),
                Stop::Fault(fault) => return Err(self.shared.fail(fault)),
                Stop::Wait { name, .. } if !bias.waits() => return Err(in_use(name)),
                Stop::Wait { name, mode, keep } => self.wait(own, Wanted { name, mode, keep })?,
            }
            // Others may have failed while this one waited.
            self.shared.check()?;
        }
    }

    fn undo_statement(&mut self, first: usize) -> Result<(), Status> {
        let transaction = &mut self.held.transaction;
        if transaction.changes.len() == first {
            return Ok(());
        }
        transaction.is_swept = true;
        let undone = self.shared.undo(&transaction.changes, first);
        undone.map_err(|fault| self.shared.fail_for_good(fault))
    }

    /// Long transactions do not fill the memory with their part of the log.
    fn relieve(&self) -> Result<(), Status> {
        let changes = self.held.transaction.changes.len();
        if changes == 0 || changes & 0xff != 0 {
            return Ok(());
        }
        let relieved = self.shared.store.log.relieve();
        relieved.map_err(|fault| self.shared.fail(fault))
    }

    /// Outside of transactions, a lock that a read asked for outlives it.
    fn keep_biased(&mut self, own: &Own, opened: FileHandle, bias: LockBias) {
        if bias == LockBias::None {
            return;
        }
        let open = &own.files[opened.0];
        let Some(current) = &open.current else {
            return;
        };
        let file = open.file.id;
        let name = LockName::record(file, current.position());
        if bias.is_single() {
            self.release_kept(own, opened, |kept| kept.is_single && kept.name != name);
        }
        let Held {
            transaction, kept, ..
        } = &mut *self.held;
        if kept.iter().any(|it| it.name == name) {
            return;
        }
        // With the lock on the record goes the part of the file.
        kept.extend(transaction.locks.drain(..).map(|name| KeptLock {
            opened,
            file,
            name,
            is_single: bias.is_single(),
        }));
    }

    /// Gives back locks on a file's records, and the part of the file with the last one. In a
    /// transaction they are kept to its end: it may rely on them.
    pub(super) fn release_kept(
        &mut self,
        own: &Own,
        opened: FileHandle,
        which: impl Fn(&KeptLock) -> bool,
    ) {
        if self.held.kept.is_empty() {
            return;
        }
        let is_kept_on = self.in_transaction() || self.held.unconfirmed.is_some();
        let Held {
            transaction, kept, ..
        } = &mut *self.held;
        let goes = |it: &KeptLock| it.opened == opened && !it.name.is_file() && which(it);
        let mut released: Vec<KeptLock> = kept.extract_if(.., |it| goes(it)).collect();
        let file = own.files[opened.0].file.id;
        let of_file = |it: &KeptLock| it.file == file;
        if !kept.iter().any(|it| of_file(it) && !it.name.is_file()) {
            released.extend(kept.extract_if(.., |it| of_file(it)));
        }
        for KeptLock { name, .. } in released {
            if is_kept_on {
                transaction.locks.push(name);
            } else {
                self.shared.locks.release(self.place.number, name);
            }
        }
    }
}

pub(super) fn in_use(name: LockName) -> Status {
    if name.is_file() {
        Status::FileInUse
    } else {
        Status::RecordInUse
    }
}
