//! Statements of the record service, as LMDB does them.

use concurve_records::LockBias;
use concurve_records::command::{AnswerForm, Command, Field, Wanted, Words as _};

use super::fault::Fault;
use super::store::{File, Store};
use crate::embedded::words::Words;
use crate::workload::Numbers;
use crate::workload::words::Word;

/// What a statement does. Words are given by their places.
#[derive(Debug, Clone)]
pub enum Operation {
    Begin,
    End,
    Abort,
    Insert {
        file: usize,
        record: usize,
    },
    /// Reads the record with a key, and the number in it; with a lock nobody else writes until
    /// this session has updated it or its transaction has ended.
    Get {
        file: usize,
        key: usize,
        locks: bool,
        field: Option<Field>,
    },
    /// Changes the record that was read last in the file.
    Update {
        file: usize,
        record: usize,
    },
}

/// A statement with its words, and the file that it is about.
#[derive(Debug)]
pub struct Prepared {
    pub operation: Operation,
    pub file: Option<File>,
    words: Words,
}

impl Prepared {
    pub fn new(store: &Store, words: &[Word]) -> Result<Self, Fault> {
        let words = Words(words.to_vec());
        let command = Command::parse(&words)?;
        let operation = Operation::of(&command);
        let operation = operation.ok_or_else(|| Fault::NotHere(text(&words.0)))?;
        let file = operation.file().map(|it| store.file(words.word(it)));
        Ok(Self {
            file: file.transpose()?.cloned(),
            operation,
            words,
        })
    }

    /// Puts the numbers of a transaction into the words.
    pub fn fill(&mut self, numbers: &Numbers) {
        for word in &mut self.words.0 {
            word.fill(numbers);
        }
    }

    pub fn word(&self, at: usize) -> &[u8] {
        self.words.word(at)
    }
}

impl Operation {
    fn of(command: &Command) -> Option<Self> {
        Some(match command {
            Command::Begin(_) => Self::Begin,
            Command::End => Self::End,
            Command::Abort => Self::Abort,
            Command::Insert { file, record } => Self::Insert {
                file: *file,
                record: *record,
            },
            Command::Update { file, record } => Self::Update {
                file: *file,
                record: *record,
            },
            Command::Get {
                file,
                wanted: Wanted::Equal(0, key),
                bias,
                answer,
            } => Self::Get {
                file: *file,
                key: *key,
                locks: *bias != LockBias::None,
                field: match answer {
                    AnswerForm::Record => None,
                    AnswerForm::Field(field) => Some(*field),
                    AnswerForm::Many(_) => return None,
                },
            },
            _ => return None,
        })
    }

    fn file(&self) -> Option<usize> {
        match self {
            Self::Begin | Self::End | Self::Abort => None,
            Self::Insert { file, .. } | Self::Get { file, .. } | Self::Update { file, .. } => {
                Some(*file)
            }
        }
    }
}

/// A statement as people write it.
fn text(words: &[Word]) -> String {
    let words = words.iter().map(|it| String::from_utf8_lossy(&it.bytes));
    Vec::from_iter(words).join(" ")
}
