//! What an operation on a file uses, and how it locks.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::fence;

use crate::cache::PageWrite;
use crate::error::{Fault, Stop};
use crate::file::RecordFile;
use crate::held::Transaction;
use crate::locks::{FILE_PARTS, Gap, LockName, LockOutcome, Mode};
use crate::log::record::{SYSTEM, SlotChange};
use crate::registry::Registration;
use crate::session::active::Active;
use crate::session::{Current, FileHandle, LocalState, TransactionKind};
use crate::shared::Shared;
use crate::slots::Position;
use crate::status::Status;

pub(super) struct Work<'a> {
    pub shared: &'a Shared,
    pub file: &'a RecordFile,
    pub current: &'a mut Option<Current>,
    /// Where a record is read to that becomes the position if it is there.
    pub spare: &'a mut Current,
    pub registration: &'a Registration,
    pub transaction: &'a mut Transaction,
    /// The part of each file that the session locks, and the stripe of its free space.
    part: &'a mut u64,
}

impl<'a> Work<'a> {
    pub fn new(active: &'a mut Active, local: &'a mut LocalState, file: FileHandle) -> Self {
        let open = &mut local.files[file.0];
        Self {
            shared: active.shared,
            file: &open.file,
            current: &mut open.current,
            spare: &mut local.spare,
            registration: active.registration,
            transaction: &mut active.held.transaction,
            part: &mut local.part,
        }
    }

    /// Locks the file as a whole, or a part of it if its records are locked one by one.
    pub fn enter(&mut self) -> Result<(), Stop> {
        if self.transaction.files.contains(&self.file.id) {
            return Ok(());
        }
        if self.has_whole_file() {
            for part in 0..FILE_PARTS {
                self.take(LockName::file(self.file.id, part), Mode::Exclusive)?;
            }
        } else {
            let (owner, file) = (self.registration.number, self.file.id);
            // It may have the part already, if it had to wait for it.
            if !self
                .transaction
                .holds(LockName::file(file, *self.part), Mode::Shared)
            {
                *self.part = self.shared.locks.free_part(owner, file, *self.part);
                self.take(LockName::file(file, *self.part), Mode::Shared)?;
            }
        }
        // The session that dropped it held all its locks.
        if self.file.is_dropped() {
            return Err(Status::FileNotFound.into());
        }
        self.transaction.files.push(self.file.id);
        Ok(())
    }

    /// Where it takes free space from: with the part that it locked last, mostly a page of its own to fill.
    pub fn stripe(&self) -> u32 {
        *self.part as u32
    }

    fn has_whole_file(&self) -> bool {
        self.transaction.kind == Some(TransactionKind::Exclusive)
    }

    /// Whether others must not change what is read.
    fn is_repeatable(&self) -> bool {
        self.transaction.kind == Some(TransactionKind::Concurrent)
    }

    fn take(&mut self, name: LockName, mode: Mode) -> Result<(), Stop> {
        if self.transaction.holds(name, mode) {
            return Ok(());
        }
        let owner = self.registration.number;
        match self.shared.locks.try_lock(owner, name, mode) {
            LockOutcome::Busy => {
                let keep = true;
                Err(Stop::Wait { name, mode, keep })
            }
            outcome => {
                self.transaction.keep(outcome, name, mode);
                Ok(())
            }
        }
    }

    /// Takes a lock in the file without waiting, unless the whole file is locked.
    pub fn lock(&mut self, name: LockName, mode: Mode) -> Result<(), Stop> {
        if self.has_whole_file() {
            return Ok(());
        }
        self.take(name, mode)
    }

    pub fn lock_record(&mut self, position: Position, mode: Mode) -> Result<(), Stop> {
        self.lock(LockName::record(self.file.id, position), mode)
    }

    /// Locks the gap before an entry, so that no other session inserts there.
    pub fn lock_gap_read(&mut self, key: usize, entry: Option<&[u8]>) -> Result<(), Stop> {
        if !self.is_repeatable() {
            return Ok(());
        }
        self.lock(LockName::gap(self.file.id, key, entry), Mode::Shared)?;
        // Who inserts here begins to change the leaf, and then looks at the lock (`LockTable::gap`). If the
        // lock was not seen, the change will be: the caller looks whether the leaf is as it was, or has its
        // latch.
        fence(SeqCst);
        Ok(())
    }

    /// For an entry that is inserted or removed: no other session may read the gap before it until
    /// the transaction ends.
    pub fn lock_gap_change(&mut self, key: usize, entry: &[u8]) -> Result<(), Stop> {
        let name = LockName::gap(self.file.id, key, Some(entry));
        self.lock(name, Mode::Exclusive)
    }

    /// Before an entry is inserted in front of another one: no other session may have read the gap.
    /// A session that has read it itself has then read both parts of it.
    pub fn enter_gap(&mut self, key: usize, entry: &[u8], next: Option<&[u8]>) -> Result<(), Stop> {
        if self.has_whole_file() {
            return Ok(());
        }
        let name = LockName::gap(self.file.id, key, next);
        match self.shared.locks.gap(self.registration.number, name) {
            Gap::Free => Ok(()),
            Gap::Own => self.lock_gap_read(key, Some(entry)),
            Gap::Read => Err(Stop::Wait {
                name,
                mode: Mode::Exclusive,
                keep: false,
            }),
        }
    }

    /// The number of the transaction, assigned at its first change.
    pub fn number(&mut self) -> u64 {
        if self.transaction.id == SYSTEM {
            self.transaction.id = self.shared.new_transaction(&self.registration.numbers);
            // Not after its first record. A later byte would be known, in a word that all sessions write.
            let synced = self.shared.store.log.synced();
            let lsn = synced.max(self.registration.last_commit.load(Relaxed));
            self.registration.first_lsn.store(lsn, SeqCst);
        }
        self.transaction.id
    }

    /// Changes a slot, and remembers the change for an undo.
    pub fn change(&mut self, page: &mut PageWrite, change: &SlotChange) {
        self.transaction.changes.push(change);
        let session = self.registration.number;
        let record_bytes = self.file.record_bytes();
        let store = &self.shared.store;
        store.change_slot(session, page, change, record_bytes);
    }

    pub fn write_page(&self, position: Position) -> Result<PageWrite<'a>, Fault> {
        self.shared.store.write(self.file.page(position.page))
    }
}
