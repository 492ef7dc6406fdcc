//! A session: what it executes, and what an error leaves.

use std::ops::Range;

use rusqlite::{Connection, ErrorCode};

use super::WAITS;
use super::statement::Prepared;
use crate::embedded::EngineSession;
use crate::workload::{Answer, Numbers};

/// A connection and its statements.
pub struct Session<'a> {
    connection: &'a Connection,
    statements: Vec<Prepared<'a>>,
}

impl<'a> Session<'a> {
    pub fn new(connection: &'a Connection, statements: Vec<Prepared<'a>>) -> Self {
        Self {
            connection,
            statements,
        }
    }
}

impl EngineSession for Session<'_> {
    fn execute(&mut self, statements: Range<usize>, numbers: &Numbers) -> Answer {
        let mut answer = Answer::Nothing;
        for prepared in &mut self.statements[statements] {
            match prepared.execute(numbers) {
                Ok(done) => answer = done,
                Err(error) => {
                    self.roll_back();
                    return Answer::Error(kind(&error));
                }
            }
        }
        answer
    }

    fn waits(&self) -> u64 {
        WAITS.get()
    }
}

impl Session<'_> {
    fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            // What cannot be rolled back has been: some errors end the transaction themselves.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

/// The name of an error in SQLite's documentation, as far as loads meet it.
fn kind(error: &rusqlite::Error) -> String {
    let Some(code) = error.sqlite_error_code() else {
        return error.to_string();
    };
    let name = match code {
        ErrorCode::DatabaseBusy => "SQLITE_BUSY",
        ErrorCode::DatabaseLocked => "SQLITE_LOCKED",
        ErrorCode::DiskFull => "SQLITE_FULL",
        ErrorCode::SystemIoFailure => "SQLITE_IOERR",
        ErrorCode::DatabaseCorrupt => "SQLITE_CORRUPT",
        ErrorCode::ReadOnly => "SQLITE_READONLY",
        ErrorCode::ConstraintViolation => "SQLITE_CONSTRAINT",
        ErrorCode::OutOfMemory => "SQLITE_NOMEM",
        other => return format!("SQLite: {other:?}"),
    };
    name.to_owned()
}
