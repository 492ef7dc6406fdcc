//! What a statement is compiled to, and its execution.

use crate::StatementError;

/// Fields are whole numbers: enough for accounts, tellers and branches.
pub type Value = i64;

/// A file, as its catalogue numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId(pub u32);

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// The caller's, from 0.
    Parameter(usize),
    /// The statement's own.
    Literal(Value),
}

/// What is done. Keys are those of the file's first key; fields are numbered from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Reads a field of the record with this key.
    Get {
        file: FileId,
        field: usize,
        key: Operand,
    },
    /// Adds to a field of the record with this key.
    Add {
        file: FileId,
        field: usize,
        delta: Operand,
        key: Operand,
    },
    /// Puts a record in.
    Insert { file: FileId, values: Vec<Operand> },
    /// Takes the record with this key out.
    Delete { file: FileId, key: Operand },
    /// Counts the records with keys from one to another, both included.
    Count {
        file: FileId,
        from: Operand,
        to: Operand,
    },
    /// Adds up a field of these.
    Sum {
        file: FileId,
        field: usize,
        from: Operand,
        to: Operand,
    },
}

/// A compiled statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub operation: Operation,
    /// How many values the caller gives.
    pub parameters: usize,
    /// The catalogue's version that it was compiled for.
    pub version: u64,
}

/// What a statement answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The field's value, or its new one.
    Value(Value),
    /// Done.
    Done,
    /// Of records, or of what stands in them.
    Total(Value),
    /// There is no record with this key.
    NotFound,
    /// There is one already.
    Exists,
}

/// The records, in a session of theirs: a transaction is its business.
pub trait Files {
    type Error: From<StatementError>;

    /// A field; `None`: there is no record with this key.
    fn get(&mut self, file: FileId, field: usize, key: Value)
    -> Result<Option<Value>, Self::Error>;

    /// Adds to a field, and says what it is then. `None`: there is no record with this key.
    fn add(
        &mut self,
        file: FileId,
        field: usize,
        key: Value,
        delta: Value,
    ) -> Result<Option<Value>, Self::Error>;

    /// Puts a record of these fields in. False: there is one with its key.
    fn insert(&mut self, file: FileId, values: &[Value]) -> Result<bool, Self::Error>;

    /// Takes a record out. False: there is none.
    fn delete(&mut self, file: FileId, key: Value) -> Result<bool, Self::Error>;

    /// Counts the keys from one to another.
    fn count(&mut self, file: FileId, from: Value, to: Value) -> Result<Value, Self::Error>;

    /// Adds up a field of the records with these keys.
    fn sum(
        &mut self,
        file: FileId,
        field: usize,
        from: Value,
        to: Value,
    ) -> Result<Value, Self::Error>;
}

impl Plan {
    /// Does what the statement says.
    ///
    /// # Errors
    /// What the files say; [`StatementError::Parameters`] if there are more or fewer than it needs.
    pub fn execute<F: Files>(&self, given: &[Value], files: &mut F) -> Result<Answer, F::Error> {
        let wanted = self.parameters;
        if given.len() != wanted {
            let given = given.len();
            return Err(StatementError::Parameters { wanted, given }.into());
        }
        let value = |operand: Operand| match operand {
            Operand::Parameter(at) => given[at],
            Operand::Literal(value) => value,
        };
        let found = |it: Option<Value>| it.map_or(Answer::NotFound, Answer::Value);
        Ok(match &self.operation {
            Operation::Get { file, field, key } => found(files.get(*file, *field, value(*key))?),
            Operation::Add {
                file,
                field,
                delta,
                key,
            } => found(files.add(*file, *field, value(*key), value(*delta))?),
            Operation::Insert { file, values } => {
                let values: Vec<_> = values.iter().map(|it| value(*it)).collect();
                if files.insert(*file, &values)? {
                    Answer::Done
                } else {
                    Answer::Exists
                }
            }
            Operation::Delete { file, key } => {
                if files.delete(*file, value(*key))? {
                    Answer::Done
                } else {
                    Answer::NotFound
                }
            }
            Operation::Count { file, from, to } => {
                Answer::Total(files.count(*file, value(*from), value(*to))?)
            }
            Operation::Sum {
                file,
                field,
                from,
                to,
            } => Answer::Total(files.sum(*file, *field, value(*from), value(*to))?),
        })
    }
}
