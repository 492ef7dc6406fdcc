//! Statements in SQLite's dialect, prepared on a connection.

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::workload::{Answer, Parameters, Piece, Statement};

/// A statement in SQLite's dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sql {
    pub text: String,
    /// The values of the `?`, in order.
    values: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    /// A parameter, by its slot.
    Parameter(usize),
    Bytes(Vec<u8>),
}

impl Sql {
    pub fn of(statement: &Statement) -> Self {
        let (mut text, mut values) = (String::new(), Vec::new());
        for piece in &statement.pieces {
            match piece {
                Piece::Text(part) => {
                    text.push_str(part);
                    continue;
                }
                Piece::Parameter(slot) | Piece::Digits { slot, .. } => {
                    values.push(Value::Parameter(*slot));
                }
                Piece::Bytes(bytes) => values.push(Value::Bytes(bytes.clone())),
            }
            text.push('?');
        }
        Self { text, values }
    }
}

/// A statement of a connection.
pub struct Prepared<'a> {
    statement: rusqlite::Statement<'a>,
    /// The position (from 1) and the slot of each parameter.
    parameters: Vec<(usize, usize)>,
    has_rows: bool,
    changes_rows: bool,
}

/// Whether SQLite counts the rows that a statement changes: for other statements it returns the count
/// of an earlier one.
fn changes_rows(sql: &str) -> bool {
    let verb = sql.split_ascii_whitespace().next().unwrap_or("");
    ["INSERT", "UPDATE", "DELETE", "REPLACE"]
        .iter()
        .any(|it| verb.eq_ignore_ascii_case(it))
}

impl<'a> Prepared<'a> {
    pub fn new(connection: &'a Connection, sql: &Sql) -> rusqlite::Result<Self> {
        let mut statement = connection.prepare(&sql.text)?;
        let mut parameters = Vec::new();
        for (index, value) in sql.values.iter().enumerate() {
            match value {
                Value::Parameter(slot) => parameters.push((index + 1, *slot)),
                Value::Bytes(bytes) => {
                    let text = String::from_utf8_lossy(bytes);
                    statement.raw_bind_parameter(index + 1, text)?;
                }
            }
        }
        Ok(Self {
            has_rows: statement.column_count() > 0,
            changes_rows: changes_rows(&sql.text),
            statement,
            parameters,
        })
    }

    pub fn execute(&mut self, parameters: &Parameters) -> rusqlite::Result<Answer> {
        for (index, slot) in &self.parameters {
            self.statement
                .raw_bind_parameter(*index, parameters[*slot])?;
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
