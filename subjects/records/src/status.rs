//! Status codes, numbered as Btrieve's.
//!
//! Source of numbers and names: "Status Codes and Messages" of the vendor's documentation.

use thiserror::Error;

/// Why an operation failed. Success, Btrieve's status 0, is `Ok`.
///
/// A failed operation has changed nothing, and its transaction can continue; except after
/// [`Status::Deadlock`], when only [`abort`](crate::session::Session::abort) is useful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Status {
    /// The disk failed, or returned damaged data. [`Engine::failure`] has the details.
    ///
    /// [`Engine::failure`]: crate::engine::Engine::failure
    #[error("2: the disk failed, or a page on it is damaged")]
    Io,
    #[error("3: the file is not open in this session")]
    FileNotOpen,
    #[error("4: no record has this key value")]
    KeyNotFound,
    #[error("5: a record has this value already, and the key allows no duplicates")]
    DuplicateKey,
    #[error("6: the file has no key of this number")]
    InvalidKeyNumber,
    /// Update, Delete, Next or Previous without a record that was read before, or after it was
    /// deleted.
    #[error("8: the session has no position in this file")]
    InvalidPosition,
    #[error("9: no further record in this direction")]
    EndOfFile,
    #[error("12: there is no file of this name")]
    FileNotFound,
    #[error("18: the disk is full")]
    DiskFull,
    #[error("21: the key value is not as long as the key")]
    KeyLength,
    #[error("22: the record is not as long as the records of this file")]
    RecordLength,
    #[error("59: there is a file of this name already")]
    FileExists,
    #[error("37: the session has a transaction already")]
    TransactionActive,
    #[error("39: the session has no transaction")]
    NoTransaction,
    /// This session is the victim of a deadlock. Its transaction still holds its locks: abort it,
    /// so that the others can continue.
    #[error("78: the session and others wait for one another")]
    Deadlock,
    /// The record was changed or deleted by another session since this one read it without a lock.
    #[error("80: the record has changed since it was read")]
    Conflict,
    /// Another session holds a lock on the record, and the operation asked not to wait.
    #[error("84: the record is in use")]
    RecordInUse,
    /// An exclusive transaction holds the file, or others use what an exclusive one asked for, and
    /// the operation asked not to wait.
    #[error("85: the file is in use")]
    FileInUse,
    /// All pages of the cache are in use: make the cache larger.
    #[error("100: no page of the cache is free")]
    NoCacheBuffer,
    /// A transaction or a comparison keeps more than the memory holds: make it smaller.
    #[error("101: the memory does not hold what the statement and its transaction keep")]
    NoMemory,
    /// Not a status of Btrieve, and only for sessions that share a thread ([`Waiting::Parks`]): the
    /// session is in the queue of a lock. Repeat the operation when the waker is called.
    ///
    /// [`Waiting::Parks`]: crate::session::Waiting::Parks
    #[error("the operation waits for a lock: repeat it")]
    Waiting,
}

impl Status {
    /// Btrieve's number.
    pub fn code(self) -> u8 {
        self.code_and_word().0
    }

    /// A word for programs.
    pub fn word(self) -> &'static str {
        self.code_and_word().1
    }

    fn code_and_word(self) -> (u8, &'static str) {
        match self {
            Status::Waiting => (0, "WAITING"),
            Status::Io => (2, "IOERROR"),
            Status::FileNotOpen => (3, "FILENOTOPEN"),
            Status::KeyNotFound => (4, "KEYNOTFOUND"),
            Status::DuplicateKey => (5, "DUPLICATEKEY"),
            Status::InvalidKeyNumber => (6, "INVALIDKEYNUMBER"),
            Status::InvalidPosition => (8, "INVALIDPOSITION"),
            Status::EndOfFile => (9, "ENDOFFILE"),
            Status::FileNotFound => (12, "FILENOTFOUND"),
            Status::DiskFull => (18, "DISKFULL"),
            Status::KeyLength => (21, "KEYLENGTH"),
            Status::RecordLength => (22, "RECORDLENGTH"),
            Status::TransactionActive => (37, "TRANSACTIONACTIVE"),
            Status::NoTransaction => (39, "NOTRANSACTION"),
            Status::FileExists => (59, "FILEEXISTS"),
            Status::Deadlock => (78, "DEADLOCK"),
            Status::Conflict => (80, "CONFLICT"),
            Status::RecordInUse => (84, "RECORDINUSE"),
            Status::FileInUse => (85, "FILEINUSE"),
            Status::NoCacheBuffer => (100, "NOCACHEBUFFER"),
            Status::NoMemory => (101, "NOMEMORY"),
        }
    }
}
