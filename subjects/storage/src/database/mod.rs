//! Databases that tables are loaded into.

mod postgres;
mod records;
mod sqlite;

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::error::{At, Error};
use crate::export::{Content, Export};

/// Bytes of rows in a transaction, where rows are inserted one by one.
const COMMIT_BYTES: usize = 1 << 20;

/// Into what tables are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// SQLite, embedded; a file for each loader, since one writes to a file at a time
    Sqlite,
    /// The record engine, embedded; all tables in six files
    Records,
    /// A PostgreSQL server, by COPY
    Postgres,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Records => "records",
            Self::Postgres => "postgres",
        }
    }

    /// Whether it lives in a folder of ours, and not behind an address.
    pub fn is_embedded(self) -> bool {
        self != Self::Postgres
    }

    /// Whether several processes can load one.
    pub fn is_shared(self) -> bool {
        self != Self::Records
    }
}

/// A database: loaders work on it at the same time.
pub trait Database: Sync {
    /// For the tables of a loader, counted from 0: to load them, and to read them afterwards.
    fn connect(&self, loader: usize) -> Result<Box<dyn Connection + '_>, Error>;
}

/// What a loader or a closing job asks of a database.
pub trait Connection {
    /// Makes a table and inserts the rows of the export's current one.
    fn load(&mut self, table: &str, rows: &mut Export) -> Result<(), Error>;

    /// Has all that is committed written to where it stays, and on the disk.
    fn savepoint(&mut self) -> Result<(), Error>;

    /// How many rows a table has.
    fn count(&mut self, table: &str) -> Result<u64, Error>;

    /// Reads all rows of a table.
    fn read(&mut self, table: &str) -> Result<Content, Error>;
}

/// Opens a new database: in a folder, or by the address of a server.
pub fn open(kind: Kind, at: &str) -> Result<Box<dyn Database>, Error> {
    Ok(match kind {
        Kind::Sqlite => Box::new(sqlite::Sqlite::new(new_folder(at)?)),
        Kind::Records => Box::new(records::Records::new(&new_folder(at)?)?),
        Kind::Postgres => Box::new(postgres::Postgres::new(at)?),
    })
}

/// For a loader that is a process: a database that its parent has opened.
pub fn join(kind: Kind, at: &str) -> Result<Box<dyn Database>, Error> {
    match kind {
        Kind::Sqlite => Ok(Box::new(sqlite::Sqlite::new(PathBuf::from(at)))),
        Kind::Postgres => Ok(Box::new(postgres::Postgres::at(at))),
        Kind::Records => Err(Error::Usage(
            "the record engine lives in one process: its loaders are threads".to_owned(),
        )),
    }
}

/// A folder with nothing in it: what else is there would be mistaken for what was loaded.
fn new_folder(at: &str) -> Result<PathBuf, Error> {
    let folder = Path::new(at);
    fs::create_dir_all(folder).at("make the folder", folder)?;
    let mut entries = fs::read_dir(folder).at("look into", folder)?;
    if entries.next().is_some() {
        let text = format!("{at} is not empty: name a new folder for the database");
        return Err(Error::Usage(text));
    }
    Ok(folder.to_owned())
}
