//! Statements in SQLite's words, prepared on a connection.

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::workload::statement::Piece;
use crate::workload::{Answer, Numbers, Statement};

/// A statement in SQLite's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sql {
    pub text: String,
    /// What stands for its parameters, from the first.
    parameters: Vec<Parameter>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Parameter {
    Number(usize),
    Bytes(Vec<u8>),
}

impl Sql {
    pub fn of(statement: &Statement) -> Self {
        let (mut text, mut parameters) = (String::new(), Vec::new());
        for piece in &statement.pieces {
            match piece {
                Piece::Text(part) => {
                    text.push_str(part);
                    continue;
                }
                Piece::Number(slot) => parameters.push(Parameter::Number(*slot)),
                Piece::Bytes(bytes) => parameters.push(Parameter::Bytes(bytes.clone())),
            }
            text.push('?');
        }
        Self { text, parameters }
    }
}

/// A statement of a connection.
pub struct Prepared<'a> {
    statement: rusqlite::Statement<'a>,
    /// Parameters from 1, and the slots of their numbers.
    numbers: Vec<(usize, usize)>,
    has_rows: bool,
    changes_rows: bool,
}

/// Whether SQLite counts the rows that a statement changes: for others it tells an older count.
fn changes_rows(sql: &str) -> bool {
    let verb = sql.split_ascii_whitespace().next().unwrap_or("");
    ["INSERT", "UPDATE", "DELETE", "REPLACE"]
        .iter()
        .any(|it| verb.eq_ignore_ascii_case(it))
}

impl<'a> Prepared<'a> {
    pub fn new(connection: &'a Connection, sql: &Sql) -> rusqlite::Result<Self> {
        let mut statement = connection.prepare(&sql.text)?;
        let mut numbers = Vec::new();
        for (index, parameter) in sql.parameters.iter().enumerate() {
            match parameter {
                Parameter::Number(slot) => numbers.push((index + 1, *slot)),
                Parameter::Bytes(bytes) => {
                    let text = String::from_utf8_lossy(bytes);
                    statement.raw_bind_parameter(index + 1, text)?;
                }
            }
        }
        Ok(Self {
            has_rows: statement.column_count() > 0,
            changes_rows: changes_rows(&sql.text),
            statement,
            numbers,
        })
    }

    pub fn execute(&mut self, numbers: &Numbers) -> rusqlite::Result<Answer> {
        for (index, slot) in &self.numbers {
            self.statement.raw_bind_parameter(*index, numbers[*slot])?;
        }
        if !self.has_rows {
            let changed = self.statement.raw_execute()?;
            return Ok(match self.changes_rows && changed == 0 {
                true => Answer::Nothing,
                false => Answer::Done(None),
            });
        }
        let mut rows = self.statement.raw_query();
        let Some(row) = rows.next()? else {
            return Ok(Answer::Nothing);
        };
        let number = match row.get_ref(0)? {
            ValueRef::Integer(number) => Some(number),
            _ => None,
        };
        while rows.next()?.is_some() {}
        Ok(Answer::Done(number))
    }
}
