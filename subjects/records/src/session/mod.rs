//! Sessions: the operations of a client.
//!
//! **Isolation.** Outside of transactions, each operation is a transaction of its own: a read sees
//! committed data, never half of a change (read committed). A transaction locks all that it reads
//! and writes until it ends, and also the gaps that its searches pass: transactions are
//! serialisable. An operation that needs a lock of another session waits, unless its [`LockBias`]
//! says otherwise; one that would wait for ever fails with [`Status::Deadlock`].
//!
//! **Positions.** A session has one position in each file: the record that it read last, and the
//! entry of the key by which it found it. Next and Previous continue from the entry, even if the
//! record no longer exists. Update and Delete concern the record, and fail if others have changed
//! it since.

mod active;
mod files;
mod get;
mod parking;
mod statement;
mod transaction;
mod unlocked;
mod values;
mod work;
mod write;

pub use crate::parameters::{FileHandle, Get, LockBias, TransactionKind, Waiting};

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::definition::Key;
use crate::file::RecordFile;
use crate::locks::WaitCell;
use crate::registry::Registration;
use crate::session::active::Active;
use crate::shared::Shared;
use crate::slots::Position;
use crate::status::Status;

/// One client of the engine.
pub struct Session {
    pub(crate) shared: Arc<Shared>,
    registration: Arc<CachePadded<Registration>>,
    local: LocalState,
}

/// The part of a session that only its own thread uses.
struct LocalState {
    cell: Arc<WaitCell>,
    files: Vec<OpenFile>,
    waiting: Waiting,
    /// Where a record is read to that becomes the position if it is there.
    spare: Current,
    /// The part of a file that it locked last, and asks for first: of each file it locks one that no other session has, if there is one.
    part: u64,
}

struct OpenFile {
    file: Arc<RecordFile>,
    current: Option<Current>,
}

/// A session's position in a file.
#[derive(Debug, Clone, Default)]
struct Current {
    key: usize,
    entry: Vec<u8>,
    /// The record as it was read; empty after it was deleted.
    record: Vec<u8>,
}

impl Current {
    fn position(&self) -> Position {
        Position::of_entry(&self.entry)
    }
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let registration = shared.sessions.register();
        Self {
            local: LocalState {
                part: u64::from(registration.number),
                cell: Arc::new(WaitCell::new(None)),
                files: Vec::new(),
                waiting: Waiting::default(),
                spare: Current::default(),
            },
            registration,
            shared,
        }
    }

    fn active(&self) -> Active<'_> {
        Active::new(&self.shared, &self.registration)
    }

    fn active_and_local(&mut self) -> (Active<'_>, &mut LocalState) {
        (
            Active::new(&self.shared, &self.registration),
            &mut self.local,
        )
    }

    /// Sets what the session does if an operation must wait. To be called before its first one.
    pub fn set_waiting(&mut self, waiting: Waiting) {
        let waker = match &waiting {
            Waiting::Parks(waker) => Some(Arc::clone(waker)),
            _ => None,
        };
        self.local.cell = Arc::new(WaitCell::new(waker));
        self.local.waiting = waiting;
    }

    /// Operation 22: the position in its file of the record that was read last.
    pub fn position(&self, file: FileHandle) -> Result<u64, Status> {
        let current = self.local.file(file)?.current.as_ref();
        let current = current.ok_or(Status::InvalidPosition)?;
        Ok(current.position().number())
    }

    /// Reads a record.
    ///
    /// # Errors
    /// [`Status::KeyNotFound`] for [`Get::Equal`], [`Status::EndOfFile`] for the others, if there is
    /// no such record; the position stays as it was.
    pub fn get(&mut self, file: FileHandle, get: Get, bias: LockBias) -> Result<&[u8], Status> {
        match self.get_unlocked(file, get, bias) {
            Some(done) => done?,
            None => {
                let (mut active, local) = self.active_and_local();
                active.statement(local, file, bias, |work| work.get(get, bias))?;
            }
        }
        let current = self.local.files[file.0].current.as_ref();
        Ok(current.map_or(&[], |it| &it.record))
    }

    /// Operation 2: inserts a record. The position stays as it was.
    ///
    /// # Errors
    /// [`Status::DuplicateKey`] if a key without duplicates has one of its values.
    pub fn insert(&mut self, file: FileHandle, record: &[u8]) -> Result<(), Status> {
        let (mut active, local) = self.active_and_local();
        active.statement(local, file, LockBias::None, |work| work.insert(record))
    }

    /// The length of the file's records, and of their keys together.
    pub(crate) fn sizes(&self, file: FileHandle) -> Result<(u64, u64), Status> {
        let file = &self.local.file(file)?.file;
        let keys: usize = file.definition.keys.iter().map(Key::bytes).sum();
        Ok((file.record_bytes() as u64, keys as u64))
    }

    /// Operation 3: changes the record that was read last. If this changes its value of the key by
    /// which it was found, Next and Previous continue from the new value.
    pub fn update(&mut self, file: FileHandle, record: &[u8]) -> Result<(), Status> {
        let (mut active, local) = self.active_and_local();
        active.statement(local, file, LockBias::None, |work| work.update(record))?;
        active.release_kept(local, file, |kept| kept.is_single);
        Ok(())
    }

    /// Operation 4: deletes the record that was read last.
    pub fn delete(&mut self, file: FileHandle) -> Result<(), Status> {
        let (mut active, local) = self.active_and_local();
        active.statement(local, file, LockBias::None, |work| work.delete())?;
        active.release_kept(local, file, |kept| kept.is_single);
        Ok(())
    }

    /// Operation 27: releases all locks on records of a file that were taken outside of
    /// transactions.
    pub fn unlock(&mut self, file: FileHandle) -> Result<(), Status> {
        self.local.file(file)?;
        let (mut active, local) = self.active_and_local();
        active.release_kept(local, file, |_| true);
        Ok(())
    }
}

impl LocalState {
    fn file(&self, file: FileHandle) -> Result<&OpenFile, Status> {
        self.files.get(file.0).ok_or(Status::FileNotOpen)
    }

    fn parks(&self) -> bool {
        matches!(self.waiting, Waiting::Parks(_))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.active().end();
        self.shared.sessions.remove(self.registration.number);
    }
}
