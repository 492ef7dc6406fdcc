//! Statements of the record language, prepared for LMDB.

use concurve_records::LockBias;
use concurve_records::command::{AnswerForm, Command, Field, Wanted, Words as _};

use super::error::LmdbError;
use super::store::{File, Store};
use crate::engine::record_language::Tokens;
use crate::workload::{Parameters, Token};

/// What a statement does. Its arguments are indices of tokens.
#[derive(Debug, Clone)]
pub enum Operation {
    Begin,
    End,
    Abort,
    Insert {
        file: usize,
        record: usize,
    },
    /// Reads the record with a key, and the number in it; with a lock no other session writes until
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

/// A statement with its tokens, and the file that it is about.
#[derive(Debug)]
pub struct Prepared {
    pub operation: Operation,
    pub file: Option<File>,
    tokens: Tokens,
}

impl Prepared {
    pub fn new(store: &Store, tokens: &[Token]) -> Result<Self, LmdbError> {
        let tokens = Tokens(tokens.to_vec());
        let command = Command::parse(&tokens)?;
        let operation = Operation::of(&command);
        let operation = operation.ok_or_else(|| LmdbError::Unsupported(text(&tokens.0)))?;
        let file = operation.file().map(|it| store.file(tokens.word(it)));
        Ok(Self {
            file: file.transpose()?.cloned(),
            operation,
            tokens,
        })
    }

    /// Writes the parameters of a transaction into the tokens.
    pub fn fill(&mut self, parameters: &Parameters) {
        for token in &mut self.tokens.0 {
            token.fill(parameters);
        }
    }

    pub fn token(&self, at: usize) -> &[u8] {
        self.tokens.word(at)
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

/// The text of a statement.
fn text(tokens: &[Token]) -> String {
    let words = tokens.iter().map(|it| String::from_utf8_lossy(&it.bytes));
    Vec::from_iter(words).join(" ")
}
