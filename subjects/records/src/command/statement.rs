//! The types of the record language.

use thiserror::Error;

use crate::definition::FileDefinition;
use crate::session::{LockBias, TransactionKind};
use crate::status::Status;

/// Length of a number in a statement.
pub const NUMBER_BYTES: usize = 12;

/// The words of a statement.
pub trait Words {
    fn count(&self) -> usize;

    /// A word; empty if there are not so many.
    fn word(&self, at: usize) -> &[u8];
}

impl Words for [&[u8]] {
    fn count(&self) -> usize {
        self.len()
    }

    fn word(&self, at: usize) -> &[u8] {
        self.get(at).copied().unwrap_or_default()
    }
}

/// An operation; the numbers are indices of words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Create {
        file: usize,
        definition: FileDefinition,
    },
    Open {
        file: usize,
    },
    Insert {
        file: usize,
        record: usize,
    },
    Get {
        file: usize,
        wanted: Wanted,
        bias: LockBias,
        answer: AnswerForm,
    },
    Update {
        file: usize,
        record: usize,
    },
    Delete {
        file: usize,
    },
    Begin(TransactionKind),
    End,
    Abort,
    Unlock {
        file: usize,
    },
    Position {
        file: usize,
    },
    Stat {
        file: usize,
    },
    /// Inserts records that begin with the numbers of a range, in an exclusive transaction of its
    /// own.
    Fill {
        file: usize,
        first: u64,
        last: u64,
        rest: usize,
    },
    /// Drops a file; or, with `*` at the end, all with this prefix.
    Drop {
        file: usize,
    },
    /// The number of files with a prefix.
    Files {
        prefix: usize,
    },
    /// The number of records of a file.
    Count {
        file: usize,
    },
    /// The sum of a number over all records.
    Sum {
        file: usize,
        field: Field,
    },
    /// The number of groups whose sums differ between two files.
    Compare([Sums; 2]),
    Checkpoint,
}

/// A range of bytes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub offset: usize,
    pub bytes: usize,
}

/// Sums of a number over the records of a file that agree in another field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sums {
    pub file: usize,
    pub field: Field,
    /// `None`: all records are one group.
    pub by: Option<Field>,
}

/// The record to read: by the number of a key and the index of the word with the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Equal(usize, usize),
    Greater(usize, usize),
    AtLeast(usize, usize),
    Less(usize, usize),
    AtMost(usize, usize),
    First(usize),
    Last(usize),
    Next,
    Previous,
}

/// What a read returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerForm {
    Record,
    /// The record, and the number in one of its fields.
    Field(Field),
    /// As many records as there are, up to a number and to [`MANY_BYTES_MAX`].
    Many(usize),
}

/// The largest number of bytes of the records of one reply; one record is always returned.
pub const MANY_BYTES_MAX: usize = 1 << 16;

/// The result of an operation.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    Done,
    /// Done, but durable only after [`Session::confirm`](crate::session::Session::confirm).
    Unconfirmed,
    Record(&'a [u8]),
    Field(&'a [u8], i64),
    /// Records of one length, one after the other.
    Many {
        records: &'a [u8],
        record_bytes: usize,
    },
    Number(i64),
    Figures(Vec<(&'static str, u64)>),
}

/// Why an operation was not done.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub enum Refusal {
    #[error(transparent)]
    Status(#[from] Status),
    #[error("the sum of {0} and {1} does not fit into 64 bits")]
    Overflow(i64, i64),
    /// The statement cannot be parsed, or does not fit the records.
    #[error("{0}")]
    Usage(String),
}

impl Refusal {
    /// A word for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Refusal::Status(status) => status.word(),
            Refusal::Overflow(..) => "OVERFLOW",
            Refusal::Usage(_) => "ERR",
        }
    }
}
