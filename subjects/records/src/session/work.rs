//! An operation while it works on a file: what it may use, and how it locks.

use std::sync::atomic::Ordering::SeqCst;

use crate::cache::PageWrite;
use crate::error::{Fault, Stop};
use crate::file::RecordFile;
use crate::locks::{Asked, FILE_PARTS, Gap, LockName, Mode};
use crate::log::record::{Record, SYSTEM, SlotChange};
use crate::registry::Place;
use crate::session::active::Active;
use crate::session::transaction::Transaction;
use crate::session::{Current, FileHandle, Own, TransactionKind};
use crate::shared::Shared;
use crate::slots::Position;
use crate::status::Status;

pub(super) struct Work<'a> {
    pub shared: &'a Shared,
    pub file: &'a RecordFile,
    pub current: &'a mut Option<Current>,
    pub place: &'a Place,
    pub transaction: &'a mut Transaction,
}

impl<'a> Work<'a> {
    pub fn new(active: &'a mut Active, own: &'a mut Own, file: FileHandle) -> Self {
        let open = &mut own.files[file.0];
        Self {
            shared: active.shared,
            file: &open.file,
            current: &mut open.current,
            place: active.place,
            transaction: &mut active.held.transaction,
        }
    }

    /// Locks the file as a whole, or says that its records are locked one by one.
    pub fn enter(&mut self) -> Result<(), Stop> {
        if self.transaction.files.contains(&self.file.id) {
            return Ok(());
        }
        if self.has_whole_file() {
            for part in 0..FILE_PARTS {
                self.take(LockName::file(self.file.id, part), Mode::Exclusive)?;
            }
        } else {
            let part = u64::from(self.place.number);
            self.take(LockName::file(self.file.id, part), Mode::Shared)?;
        }
        // Who gave it up held all its locks.
        if self.file.is_gone() {
            return Err(Status::FileNotFound.into());
        }
        self.transaction.files.push(self.file.id);
        Ok(())
    }

    fn has_whole_file(&self) -> bool {
        self.transaction.kind == Some(TransactionKind::Exclusive)
    }

    /// Whether what is read must stay as it is.
    fn is_repeatable(&self) -> bool {
        self.transaction.kind == Some(TransactionKind::Concurrent)
    }

    fn take(&mut self, name: LockName, mode: Mode) -> Result<(), Stop> {
        match self.shared.locks.ask(self.place.number, name, mode) {
            Asked::New => self.transaction.locks.push(name),
            Asked::Held => {}
            Asked::Busy => {
                let keep = true;
                return Err(Stop::Wait { name, mode, keep });
            }
        }
        Ok(())
    }

    /// Locks something of the file without waiting, unless the whole file is locked.
    pub fn lock(&mut self, name: LockName, mode: Mode) -> Result<(), Stop> {
        if self.has_whole_file() {
            return Ok(());
        }
        self.take(name, mode)
    }

    pub fn lock_record(&mut self, position: Position, mode: Mode) -> Result<(), Stop> {
        self.lock(LockName::record(self.file.id, position), mode)
    }

    /// Sees to it that nobody puts an entry before this one.
    pub fn lock_gap_read(&mut self, key: usize, entry: Option<&[u8]>) -> Result<(), Stop> {
        if !self.is_repeatable() {
            return Ok(());
        }
        self.lock(LockName::gap(self.file.id, key, entry), Mode::Shared)
    }

    /// For an entry that comes or goes: nobody may read the gap before it until that is settled.
    pub fn lock_gap_change(&mut self, key: usize, entry: &[u8]) -> Result<(), Stop> {
        let name = LockName::gap(self.file.id, key, Some(entry));
        self.lock(name, Mode::Exclusive)
    }

    /// Before an entry is put in before another one: nobody else may have read the gap. Who has read
    /// it himself has read both parts of it.
    pub fn enter_gap(&mut self, key: usize, entry: &[u8], next: Option<&[u8]>) -> Result<(), Stop> {
        if self.has_whole_file() {
            return Ok(());
        }
        let name = LockName::gap(self.file.id, key, next);
        match self.shared.locks.gap(self.place.number, name) {
            Gap::Free => Ok(()),
            Gap::Own => self.lock_gap_read(key, Some(entry)),
            Gap::Read => Err(Stop::Wait {
                name,
                mode: Mode::Exclusive,
                keep: false,
            }),
        }
    }

    /// Gives the transaction its number, before its first change.
    pub fn number(&mut self) -> u64 {
        if self.transaction.id == SYSTEM {
            self.transaction.id = self.shared.new_transaction();
            // No later than its first record will be.
            let lsn = self.shared.store.log.written();
            self.place.first_lsn.store(lsn, SeqCst);
        }
        self.transaction.id
    }

    /// Changes a slot so that it can be undone.
    pub fn change(&mut self, page: &mut PageWrite, change: &SlotChange) {
        self.transaction.changes.push(change);
        let record = Record::Slot(*change);
        self.shared
            .store
            .change(page, &record, self.file.record_bytes());
    }

    pub fn write_page(&self, position: Position) -> Result<PageWrite<'a>, Fault> {
        self.shared.store.write(self.file.page(position.page))
    }
}
