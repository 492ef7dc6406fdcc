//! Sessions: what a client can ask for.
//!
//! **Isolation.** Outside of transactions, each operation is a transaction of its own: a read sees
//! what is committed, never half of it (read committed). In a transaction, all that is read and
//! written is locked to its end, with the gaps that a search went through: transactions are
//! serialisable. An operation that meets a lock waits, unless its [`LockBias`] says not to; who
//! would wait for ever is told so by [`Status::Deadlock`].
//!
//! **Positions.** A session has one position in each file: the record that it read last, and the
//! entry of the key by which it found it. Next and Previous go on from the entry, even if the record
//! is gone. Update and Delete are about the record, and are refused if others have changed it since.

mod files;
mod get;
mod parking;
mod statement;
mod transaction;
mod work;
mod write;

use std::sync::Arc;

use concurve_latch::MutexGuard;

use crate::engine::Shared;
use crate::file::RecordFile;
use crate::locks::{LockName, WaitCell, Waker};
use crate::registry::Place;
use crate::session::parking::Parked;
use crate::session::transaction::Transaction;
use crate::slots::Position;
use crate::status::Status;

/// A file that a session has opened; of no use to other sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileHandle(usize);

/// How a transaction shares files with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionKind {
    /// Operation 19: each file that it touches is locked as a whole.
    Exclusive,
    /// Operation 1019: records are locked.
    Concurrent,
}

impl TransactionKind {
    /// Btrieve's operation code for its beginning.
    pub fn code(self) -> u16 {
        match self {
            TransactionKind::Exclusive => 19,
            TransactionKind::Concurrent => 1019,
        }
    }
}

/// How a read locks the record that it finds, so that nobody else reads it with a lock or changes it.
///
/// In a transaction, the lock is kept to its end, and *single* and *multiple* are the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LockBias {
    /// In a transaction the record is locked against changes, but others may read it.
    #[default]
    None,
    /// +100: one record of the file at a time; wait.
    SingleWait,
    /// +200: one record of the file at a time; [`Status::RecordInUse`] instead of waiting.
    SingleNoWait,
    /// +300: beside other records of the file; wait.
    MultipleWait,
    /// +400: beside other records of the file; [`Status::RecordInUse`] instead of waiting.
    MultipleNoWait,
}

impl LockBias {
    /// What it adds to an operation's code.
    pub fn code(self) -> u16 {
        match self {
            LockBias::None => 0,
            LockBias::SingleWait => 100,
            LockBias::SingleNoWait => 200,
            LockBias::MultipleWait => 300,
            LockBias::MultipleNoWait => 400,
        }
    }

    fn waits(self) -> bool {
        !matches!(self, LockBias::SingleNoWait | LockBias::MultipleNoWait)
    }

    fn is_single(self) -> bool {
        matches!(self, LockBias::SingleWait | LockBias::SingleNoWait)
    }
}

/// Which record is asked for: by a key's number and a value of it as it stands in records, or from
/// the session's position. Among equal values, those of lower places in the file come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Get<'a> {
    /// Operation 5.
    Equal(usize, &'a [u8]),
    /// Operation 6.
    Next,
    /// Operation 7.
    Previous,
    /// Operation 8.
    Greater(usize, &'a [u8]),
    /// Operation 9.
    AtLeast(usize, &'a [u8]),
    /// Operation 10.
    Less(usize, &'a [u8]),
    /// Operation 11.
    AtMost(usize, &'a [u8]),
    /// Operation 12.
    First(usize),
    /// Operation 13.
    Last(usize),
}

/// What a session does where an operation must wait.
#[derive(Clone, Default)]
pub enum Waiting {
    /// Its thread sleeps: at first.
    #[default]
    Sleeps,
    /// It never waits for locks: [`Status::RecordInUse`] or [`Status::FileInUse`], whatever the bias.
    Refuses,
    /// Its thread serves other sessions too. An operation that meets a lock answers
    /// [`Status::Waiting`]; the waker is called, from any thread, when the lock is granted, and the
    /// same is asked for again; after 10 ms too, 20, 40 …, which is when deadlocks are looked for. What
    /// commits is promised only by [`Session::confirm`].
    Parks(Waker),
}

/// One client of the engine.
pub struct Session {
    pub(crate) shared: Arc<Shared>,
    place: Arc<Place>,
    own: Own,
}

/// What nobody else needs of a session.
struct Own {
    cell: Arc<WaitCell>,
    files: Vec<OpenFile>,
    waiting: Waiting,
}

/// What a session holds that others may wait for. If its engine dies, another one gives it back.
#[derive(Default)]
pub struct Held {
    transaction: Transaction,
    /// Locks that reads with a bias took outside of transactions.
    kept: Vec<KeptLock>,
    /// It has a place at work, and gives it up where it sleeps.
    is_at_work: bool,
    /// The lock that it is in a queue for.
    parked: Option<Parked>,
    /// Its commit is in the log up to this byte, and maybe not on the disk.
    unconfirmed: Option<u64>,
}

/// A session while it does something: what it holds is latched. Nobody else wants that latch; but an
/// engine that dies while it holds one has left something half done.
struct Active<'a> {
    shared: &'a Shared,
    place: &'a Place,
    held: MutexGuard<'a, Held>,
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

/// A lock that a session keeps until it gives it back.
struct KeptLock {
    opened: FileHandle,
    /// The file's number.
    file: u32,
    name: LockName,
    is_single: bool,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            place: shared.sessions.enter(),
            shared,
            own: Own {
                cell: Arc::new(WaitCell::new(None)),
                files: Vec::new(),
                waiting: Waiting::default(),
            },
        }
    }

    fn active(&self) -> Active<'_> {
        Active::new(&self.shared, &self.place)
    }

    fn active_and_own(&mut self) -> (Active<'_>, &mut Own) {
        (Active::new(&self.shared, &self.place), &mut self.own)
    }

    /// Says what it does where an operation must wait; before its first one.
    pub fn set_waiting(&mut self, waiting: Waiting) {
        let waker = match &waiting {
            Waiting::Parks(waker) => Some(Arc::clone(waker)),
            _ => None,
        };
        self.own.cell = Arc::new(WaitCell::new(waker));
        self.own.waiting = waiting;
    }

    /// Operation 22: where in its file the record that was read last is.
    pub fn position(&self, file: FileHandle) -> Result<u64, Status> {
        let current = self.own.file(file)?.current.as_ref();
        let current = current.ok_or(Status::InvalidPosition)?;
        Ok(current.position().number())
    }

    /// Reads a record.
    ///
    /// # Errors
    /// [`Status::KeyNotFound`] for [`Get::Equal`], [`Status::EndOfFile`] for the others, if there is
    /// no such record; the position stays as it was.
    pub fn get(&mut self, file: FileHandle, get: Get, bias: LockBias) -> Result<&[u8], Status> {
        let (mut active, own) = self.active_and_own();
        active.statement(own, file, bias, |work| work.get(get, bias))?;
        drop(active);
        let current = self.own.files[file.0].current.as_ref();
        Ok(current.map_or(&[], |it| &it.record))
    }

    /// Operation 2: puts a record in. The position stays as it was.
    ///
    /// # Errors
    /// [`Status::DuplicateKey`] if a key without duplicates has one of its values.
    pub fn insert(&mut self, file: FileHandle, record: &[u8]) -> Result<(), Status> {
        let (mut active, own) = self.active_and_own();
        active.statement(own, file, LockBias::None, |work| work.insert(record))
    }

    /// Operation 3: changes the record that was read last. If its value of the key it was found by
    /// changes, Next and Previous go on from the new value.
    pub fn update(&mut self, file: FileHandle, record: &[u8]) -> Result<(), Status> {
        let (mut active, own) = self.active_and_own();
        active.statement(own, file, LockBias::None, |work| work.update(record))?;
        active.release_kept(own, file, |kept| kept.is_single);
        Ok(())
    }

    /// Operation 4: deletes the record that was read last.
    pub fn delete(&mut self, file: FileHandle) -> Result<(), Status> {
        let (mut active, own) = self.active_and_own();
        active.statement(own, file, LockBias::None, |work| work.delete())?;
        active.release_kept(own, file, |kept| kept.is_single);
        Ok(())
    }

    /// Operation 27: gives back all locks on records of a file that were taken outside of
    /// transactions.
    pub fn unlock(&mut self, file: FileHandle) -> Result<(), Status> {
        self.own.file(file)?;
        let (mut active, own) = self.active_and_own();
        active.release_kept(own, file, |_| true);
        Ok(())
    }
}

impl Own {
    fn file(&self, file: FileHandle) -> Result<&OpenFile, Status> {
        self.files.get(file.0).ok_or(Status::FileNotOpen)
    }

    fn parks(&self) -> bool {
        matches!(self.waiting, Waiting::Parks(_))
    }
}

impl<'a> Active<'a> {
    fn new(shared: &'a Shared, place: &'a Place) -> Self {
        Self {
            shared,
            place,
            held: place.held.lock(),
        }
    }

    fn in_transaction(&self) -> bool {
        self.held.transaction.kind.is_some()
    }

    /// Gives back all that the session holds. One that ends in the middle of a transaction, or of one
    /// operation, has not committed.
    fn end(&mut self) {
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

impl Drop for Session {
    fn drop(&mut self) {
        self.active().end();
        self.shared.sessions.leave(self.place.number);
    }
}
