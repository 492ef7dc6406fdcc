//! Compiled statements, and their execution.

use crate::error::StatementError;

/// The value of a field: an integer.
pub type Value = i64;

/// The number of a file in its catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId(pub u32);

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// A parameter of the caller, from 0.
    Parameter(usize),
    /// A literal of the statement.
    Literal(Value),
}

/// An operation. Keys are values of the first key of the file; fields are numbered from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Reads a field of the record with this key; `for_update`: and locks the record until the end of
    /// the transaction, so that of two which will update it one waits.
    Get {
        file: FileId,
        field: usize,
        key: Operand,
        for_update: bool,
    },
    /// Adds to a field of the record with this key.
    Add {
        file: FileId,
        field: usize,
        delta: Operand,
        key: Operand,
    },
    /// Inserts a record.
    Insert { file: FileId, values: Vec<Operand> },
    /// Deletes the record with this key.
    Delete { file: FileId, key: Operand },
    /// Counts the records with keys in an inclusive range.
    Count {
        file: FileId,
        from: Operand,
        to: Operand,
    },
    /// Sums a field of the records with keys in an inclusive range.
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
    /// The number of parameters.
    pub parameters: usize,
    /// The version of the catalogue for which it was compiled.
    pub version: u64,
}

/// The result of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The value of the field, or its new value.
    Value(Value),
    /// Done.
    Done,
    /// A number of records, or a sum.
    Total(Value),
    /// There is no record with this key.
    NotFound,
    /// There is one with this key already.
    Exists,
}

/// The files, in a session, which also handles transactions.
pub trait Files {
    type Error: From<StatementError>;

    /// The value of a field; `None` if there is no record with this key. `for_update` locks the record
    /// until the end of the transaction; outside of one, until the statement has ended.
    fn get(
        &mut self,
        file: FileId,
        field: usize,
        key: Value,
        for_update: bool,
    ) -> Result<Option<Value>, Self::Error>;

    /// Adds to a field; returns its new value, or `None` if there is no record with this key.
    fn add(
        &mut self,
        file: FileId,
        field: usize,
        key: Value,
        delta: Value,
    ) -> Result<Option<Value>, Self::Error>;

    /// Inserts a record of these fields; false if there is one with its key.
    fn insert(&mut self, file: FileId, values: &[Value]) -> Result<bool, Self::Error>;

    /// Deletes a record; false if there is none.
    fn delete(&mut self, file: FileId, key: Value) -> Result<bool, Self::Error>;

    /// Counts the records with keys in an inclusive range.
    fn count(&mut self, file: FileId, from: Value, to: Value) -> Result<Value, Self::Error>;

    /// Sums a field of the records with keys in an inclusive range.
    fn sum(
        &mut self,
        file: FileId,
        field: usize,
        from: Value,
        to: Value,
    ) -> Result<Value, Self::Error>;
}

impl Plan {
    /// Executes the statement.
    ///
    /// # Errors
    /// Those of the files; [`StatementError::Parameters`] if the number of parameters is wrong.
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
            Operation::Get {
                file,
                field,
                key,
                for_update,
            } => found(files.get(*file, *field, value(*key), *for_update)?),
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
