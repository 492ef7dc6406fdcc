//! SQLite's desk: one statement at a time.

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::{Address, connect};
use crate::desk::{Desk, DeskError, Desks};
use crate::error::Error;
use crate::stop::Stop;

impl Desks for Address {
    fn open(&self, create: bool, _stop: &Stop) -> Result<Box<dyn Desk>, Error> {
        let more = match create {
            true => OpenFlags::SQLITE_OPEN_CREATE,
            false => OpenFlags::empty(),
        };
        Ok(Box::new(SqliteDesk(connect(self, more)?)))
    }
}

struct SqliteDesk(Connection);

impl Desk for SqliteDesk {
    fn ask(&mut self, statement: &str) -> Result<Option<i64>, DeskError> {
        let row = self.0.query_row(statement, [], |row| row.get(0));
        row.optional()
            .map(Option::flatten)
            .map_err(|error| DeskError::refused(statement, error.to_string()))
    }
}
