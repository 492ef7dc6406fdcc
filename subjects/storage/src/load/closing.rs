//! The closing jobs: they read what was loaded, and find out whether it is what was exported.
//!
//! The document ran two reports, of which one compares a catalogue of tables with the database.

use super::{Loaded, Loader};
use crate::database::{Connection, Database};
use crate::error::Error;

type Job = fn(&dyn Database, &[Loader]) -> Result<(), Error>;

/// Both run at the same time.
pub const JOBS: [Job; 2] = [count, compare];

/// Counts the rows of each table.
fn count(database: &dyn Database, loaders: &[Loader]) -> Result<(), Error> {
    each(database, loaders, |connection, it| {
        let rows = connection.count(&it.table)?;
        expect(it, "rows", it.content.rows, rows)
    })
}

/// Reads each table from its begin to its end.
fn compare(database: &dyn Database, loaders: &[Loader]) -> Result<(), Error> {
    each(database, loaders, |connection, it| {
        let read = connection.read(&it.table)?;
        expect(it, "rows", it.content.rows, read.rows)?;
        expect(it, "the sum", it.content.sum.0, read.sum.0)
    })
}

fn each(
    database: &dyn Database,
    loaders: &[Loader],
    look: impl Fn(&mut dyn Connection, &Loaded) -> Result<(), Error>,
) -> Result<(), Error> {
    for (number, loader) in loaders.iter().enumerate() {
        let mut connection = database.connect(number)?;
        for table in &loader.tables {
            look(&mut *connection, table)?;
        }
    }
    Ok(())
}

fn expect(loaded: &Loaded, what: &str, exported: u64, found: u64) -> Result<(), Error> {
    if exported == found {
        return Ok(());
    }
    Err(Error::Wrong {
        table: loaded.table.clone(),
        what: format!("{what} {found}, exported were {exported}"),
    })
}
