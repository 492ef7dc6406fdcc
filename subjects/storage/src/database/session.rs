//! What a database must offer to a load.

use crate::error::Error;
use crate::export::{Content, Export};

/// Bytes of rows in a transaction, if rows are inserted one by one.
pub const COMMIT_BYTES: usize = 1 << 20;

/// A database that loaders use concurrently.
pub trait Database: Sync {
    /// Opens a session for the tables of a loader, counted from 0: to load them, and to read them
    /// afterwards.
    fn connect(&self, loader: usize) -> Result<Box<dyn DatabaseSession + '_>, Error>;
}

/// The session of a loader or a closing job in a database.
pub trait DatabaseSession {
    /// Creates a table and inserts the rows of the current table of the export.
    fn load(&mut self, table: &str, rows: &mut Export) -> Result<(), Error>;

    /// Writes all committed data to their final place on the disk.
    fn savepoint(&mut self) -> Result<(), Error>;

    /// The number of rows of a table.
    fn count(&mut self, table: &str) -> Result<u64, Error>;

    /// Reads all rows of a table.
    fn read(&mut self, table: &str) -> Result<Content, Error>;
}
