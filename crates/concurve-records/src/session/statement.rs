//! One operation: as often as it must be tried, and nothing of it if it fails.

use crate::error::Stop;
use crate::locks::LockName;
use crate::session::parking::Wanted;
use crate::session::work::Work;
use crate::session::{FileHandle, KeptLock, LockBias, Session};
use crate::status::Status;

impl Session {
    /// Does an operation on a file, in the transaction or as one of its own.
    pub(super) fn statement(
        &mut self,
        file: FileHandle,
        bias: LockBias,
        operation: impl FnMut(&mut Work) -> Result<(), Stop>,
    ) -> Result<(), Status> {
        self.confirm()?;
        self.shared.check()?;
        self.state.file(file)?;
        let done = self.try_until_done(file, bias, operation);
        if self.in_transaction() || done == Err(Status::Waiting) {
            return done;
        }
        match done {
            Ok(()) => {
                self.keep_biased(file, bias);
                self.commit()
            }
            Err(status) => self.roll_back().and(Err(status)),
        }
    }

    fn try_until_done(
        &mut self,
        file: FileHandle,
        bias: LockBias,
        mut operation: impl FnMut(&mut Work) -> Result<(), Stop>,
    ) -> Result<(), Status> {
        self.resume()?;
        loop {
            let first = self.state.transaction.changes.len();
            let stopped = {
                let mut work = Work::new(&self.shared, &mut self.state, file);
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
                Stop::Wait { name, mode, keep } => self.wait(Wanted { name, mode, keep })?,
            }
            // Others may have failed while this one waited.
            self.shared.check()?;
        }
    }

    fn undo_statement(&mut self, first: usize) -> Result<(), Status> {
        let transaction = &mut self.state.transaction;
        if transaction.changes.len() == first {
            return Ok(());
        }
        transaction.is_swept = true;
        let undone = self.shared.undo(&transaction.changes, first);
        undone.map_err(|fault| self.shared.fail_for_good(fault))
    }

    /// Long transactions do not fill the memory with their part of the log.
    fn relieve(&self) -> Result<(), Status> {
        let changes = self.state.transaction.changes.len();
        if changes == 0 || changes & 0xff != 0 {
            return Ok(());
        }
        let relieved = self.shared.store.log.relieve();
        relieved.map_err(|fault| self.shared.fail(fault))
    }

    /// Outside of transactions, a lock that a read asked for outlives it.
    fn keep_biased(&mut self, file: FileHandle, bias: LockBias) {
        if bias == LockBias::None {
            return;
        }
        let open = &self.state.files[file.0];
        let Some(current) = &open.current else {
            return;
        };
        let name = LockName::record(open.file.id, current.position());
        if bias.is_single() {
            self.release_kept(file, |kept| kept.is_single && kept.name != name);
        }
        if self.state.kept.iter().any(|it| it.name == name) {
            return;
        }
        // With the lock on the record goes the part of the file.
        for name in std::mem::take(&mut self.state.transaction.locks) {
            self.state.kept.push(KeptLock {
                file: file.0,
                name,
                is_single: bias.is_single(),
            });
        }
    }

    pub(super) fn release_single(&mut self, file: FileHandle) {
        self.release_kept(file, |kept| kept.is_single);
    }

    /// Gives back locks on a file's records, and the part of the file with the last one. In a
    /// transaction they are kept to its end: it may rely on them.
    pub(super) fn release_kept(&mut self, file: FileHandle, which: impl Fn(&KeptLock) -> bool) {
        let owner = self.state.place.number;
        let is_kept_on = self.in_transaction() || self.state.unconfirmed.is_some();
        let state = &mut self.state;
        let mut released: Vec<LockName> = Vec::new();
        state.kept.retain(|kept| {
            let goes = kept.file == file.0 && !kept.name.is_file() && which(kept);
            if goes {
                released.push(kept.name);
            }
            !goes
        });
        let id = state.files[file.0].file.id;
        let of_file = |kept: &KeptLock| state.files[kept.file].file.id == id;
        if !state
            .kept
            .iter()
            .any(|it| of_file(it) && !it.name.is_file())
        {
            let (parts, rest) = std::mem::take(&mut state.kept)
                .into_iter()
                .partition(|it| state.files[it.file].file.id == id);
            state.kept = rest;
            let parts: Vec<KeptLock> = parts;
            released.extend(parts.into_iter().map(|it| it.name));
        }
        for name in released {
            if is_kept_on {
                state.transaction.locks.push(name);
            } else {
                self.shared.locks.release(owner, name);
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
