//! Databases that tables are loaded into.

mod postgres;
mod records;
mod session;
mod sqlite;

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::error::Error;

pub use session::{Database, DatabaseSession};

/// The kind of database into which tables are loaded.
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

    /// Whether it is in a local folder, and not a server with an address.
    pub fn is_embedded(self) -> bool {
        self != Self::Postgres
    }

    /// Whether several processes can load it.
    pub fn is_shared(self) -> bool {
        self != Self::Records
    }
}

/// Opens a new database: in a folder, or at the address of a server.
pub fn open(kind: Kind, at: &str) -> Result<Box<dyn Database>, Error> {
    Ok(match kind {
        Kind::Sqlite => Box::new(sqlite::Sqlite::new(new_folder(at)?)),
        Kind::Records => Box::new(records::Records::new(&new_folder(at)?)?),
        Kind::Postgres => Box::new(postgres::Postgres::new(at)?),
    })
}

/// For a loader process: a database that its parent has opened.
pub fn join(kind: Kind, at: &str) -> Result<Box<dyn Database>, Error> {
    match kind {
        Kind::Sqlite => Ok(Box::new(sqlite::Sqlite::new(PathBuf::from(at)))),
        Kind::Postgres => Ok(Box::new(postgres::Postgres::at(at))),
        Kind::Records => Err(Error::Usage(
            "the record engine lives in one process: its loaders are threads".to_owned(),
        )),
    }
}

/// An empty folder: other files would be mistaken for loaded data.
fn new_folder(at: &str) -> Result<PathBuf, Error> {
    let folder = Path::new(at);
    fs::create_dir_all(folder).map_err(Error::io("make the folder", folder))?;
    let mut entries = fs::read_dir(folder).map_err(Error::io("read the folder", folder))?;
    if entries.next().is_some() {
        let text = format!("{at} is not empty: name a new folder for the database");
        return Err(Error::Usage(text));
    }
    Ok(folder.to_owned())
}
