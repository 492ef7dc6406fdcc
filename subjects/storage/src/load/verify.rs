//! The closing jobs: they read the loaded tables, and compare them with the export.
//!
//! The document ran two reports, of which one compares a catalogue of tables with the database.

use super::loader::{Loaded, Loader};
use crate::database::{Database, DatabaseSession};
use crate::error::Error;

type Job = fn(&dyn Database, &[Loader]) -> Result<(), Error>;

/// The jobs, which run concurrently.
pub const JOBS: [Job; 2] = [count, compare];

/// Counts the rows of each table.
fn count(database: &dyn Database, loaders: &[Loader]) -> Result<(), Error> {
    each(database, loaders, |session, it| {
        let rows = session.count(&it.table)?;
        expect(it, "rows", it.content.rows, rows)
    })
}

/// Reads each table completely.
fn compare(database: &dyn Database, loaders: &[Loader]) -> Result<(), Error> {
    each(database, loaders, |session, it| {
        let read = session.read(&it.table)?;
        expect(it, "rows", it.content.rows, read.rows)?;
        expect(it, "the sum", it.content.sum.0, read.sum.0)
    })
}

fn each(
    database: &dyn Database,
    loaders: &[Loader],
    look: impl Fn(&mut dyn DatabaseSession, &Loaded) -> Result<(), Error>,
) -> Result<(), Error> {
    for (number, loader) in loaders.iter().enumerate() {
        let mut session = database.connect(number)?;
        for table in &loader.tables {
            look(&mut *session, table)?;
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
