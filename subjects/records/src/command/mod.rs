//! The record language: operations in words, for requests of a network and for prepared statements.
//!
//! [`Command::parse`] reads the words once; [`Client::execute`] does the operation, with the same
//! words or others of the same shape: the name of a file, a key value and a record are the words at
//! the places that the command names. `docs/programs/records.md` is the user's page.
//!
//! Numbers in records and keys are text, [`NUMBER_BYTES`] characters with leading zeros and the
//! sign first, as COBOL writes them: what is on the wire, in a record and on the page are the same
//! bytes, and numbers from 0 on compare as their text does.
//!
//! ```
//! use concurve_records::command::{Client, Command, Reply};
//! use concurve_records::{Engine, Settings};
//!
//! # let folder = tempfile::tempdir()?;
//! let (engine, _) = Engine::open(folder.path(), Settings::default())?;
//! let mut client = Client::new(engine.session());
//! let mut run = |text: &str| {
//!     let words: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
//!     let command = Command::parse(&words[..]).map_err(|it| it.to_string())?;
//!     let reply = client.execute(&command, &words[..]).map_err(|it| it.to_string())?;
//!     Ok::<String, String>(format!("{reply:?}"))
//! };
//! run("CREATE accounts 24 KEY 0:12:text")?;
//! run("INSERT accounts 000000000042-00000000007")?;
//! run("BEGIN")?;
//! run("GET EQUAL accounts 0 000000000042 SINGLE FIELD 12 12")?;
//! run("UPDATE accounts 000000000042000000000100")?;
//! run("END")?;
//! # drop(client);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod audit;
mod client;
mod files;
mod parse;

pub use audit::{Groups, differing};
pub use client::Client;

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

/// An operation; the numbers are places of words.
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
    /// Records with the numbers of a range in front, in an exclusive transaction of their own.
    Fill {
        file: usize,
        first: u64,
        last: u64,
        rest: usize,
    },
    /// Gives up a file; or, with `*` at the end, all whose names begin so.
    Drop {
        file: usize,
    },
    /// How many files have names that begin so.
    Files {
        prefix: usize,
    },
    /// How many records a file has.
    Count {
        file: usize,
    },
    /// The sum of a number over all records.
    Sum {
        file: usize,
        field: Field,
    },
    /// How many groups have sums in two files that differ.
    Compare([Sums; 2]),
    Checkpoint,
}

/// Where in a record something stands.
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
    /// `None`: all of them are one group.
    pub by: Option<Field>,
}

/// Which record is asked for: by a key's number and, at a place, its value.
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

/// What a read answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerForm {
    Record,
    /// The record, and the number that stands in it.
    Field(Field),
    /// As many records as there are, up to a number and to [`MANY_BYTES_MAX`].
    Many(usize),
}

/// Records that one operation answers with are no longer than this together, but for the first.
pub const MANY_BYTES_MAX: usize = 1 << 16;

/// What an operation answered.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    Done,
    /// Done, and promised only by [`Session::confirm`](crate::session::Session::confirm).
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
    /// The statement is not understood.
    #[error("{0}")]
    Usage(String),
}

impl Refusal {
    /// A word for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Refusal::Status(status) => status.word(),
            Refusal::Usage(_) => "ERR",
        }
    }
}
