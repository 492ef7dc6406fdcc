//! Parameters of operations: which record, how it is locked, and what happens if they must wait.

use crate::locks::Waker;

/// A file that a session has opened. Not valid in other sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileHandle(pub(crate) usize);

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

/// How a read locks the record that it finds, so that no other session reads it with a lock or
/// changes it.
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
    ///
    /// [`Status::RecordInUse`]: crate::Status::RecordInUse
    SingleNoWait,
    /// +300: beside other records of the file; wait.
    MultipleWait,
    /// +400: beside other records of the file; [`Status::RecordInUse`] instead of waiting.
    ///
    /// [`Status::RecordInUse`]: crate::Status::RecordInUse
    MultipleNoWait,
}

impl LockBias {
    /// The number that it adds to an operation's code.
    pub fn code(self) -> u16 {
        match self {
            LockBias::None => 0,
            LockBias::SingleWait => 100,
            LockBias::SingleNoWait => 200,
            LockBias::MultipleWait => 300,
            LockBias::MultipleNoWait => 400,
        }
    }

    pub(crate) fn waits(self) -> bool {
        !matches!(self, LockBias::SingleNoWait | LockBias::MultipleNoWait)
    }

    pub(crate) fn is_single(self) -> bool {
        matches!(self, LockBias::SingleWait | LockBias::SingleNoWait)
    }
}

/// The record to read: by a key's number and a value as it stands in records, or from the session's
/// position. Among equal values, those at lower positions in the file come first.
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

/// What a session does if an operation must wait.
#[derive(Clone, Default)]
pub enum Waiting {
    /// Its thread sleeps: the default.
    #[default]
    Sleeps,
    /// It never waits for locks: [`Status::RecordInUse`] or [`Status::FileInUse`], whatever the
    /// bias.
    ///
    /// [`Status::RecordInUse`]: crate::Status::RecordInUse
    /// [`Status::FileInUse`]: crate::Status::FileInUse
    Refuses,
    /// Its thread serves other sessions too. An operation that needs a lock of another session
    /// fails with [`Status::Waiting`]. The waker is called, from any thread, when the lock is
    /// granted; then the caller repeats the operation. The caller also repeats it after 10 ms, 20
    /// ms, 40 ms …, when deadlocks are checked. A commit is durable only after
    /// [`Session::confirm`].
    ///
    /// [`Status::Waiting`]: crate::Status::Waiting
    /// [`Session::confirm`]: crate::Session::confirm
    Parks(Waker),
}
