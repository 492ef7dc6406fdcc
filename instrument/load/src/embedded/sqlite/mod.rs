//! SQLite. Each session has a connection of its own, with statements prepared once.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::query::Query;
use super::{Embedded, Engine, EngineError, EngineSession};
use crate::workload::Workload;

mod desk;
mod session;
mod statement;
#[cfg(test)]
mod tests;

use session::Session;
use statement::{Prepared, Sql};

pub const FORMS: &str = "sqlite:PATH?journal=wal|delete&synchronous=full|normal|off";

/// Pages of a session's own cache: enough for what a study holds in memory.
const CACHE_KIB: u32 = 32 << 10;
/// How long a session waits while others have the database: SQLite's own steps, in ms, the last
/// one again and again.
const DELAYS_MS: [u64; 12] = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100];
/// After so many steps, about a minute, it gives up with `SQLITE_BUSY`.
const STEPS_MAX: i32 = 600;

thread_local! {
    /// How often this thread's session found the database locked.
    static WAITS: Cell<u64> = const { Cell::new(0) };
}

/// Where a database is, and how it is to be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    path: PathBuf,
    journal: &'static str,
    synchronous: &'static str,
}

impl Address {
    /// Reads what follows `sqlite:`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut query = Query::parse(text)?;
        let journal = query.one_of("journal", &["wal", "delete"])?;
        let synchronous = query.one_of("synchronous", &["full", "normal", "off"])?;
        Ok(Self {
            path: query.end()?,
            journal,
            synchronous,
        })
    }

    fn place(&self) -> String {
        let Self {
            path,
            journal,
            synchronous,
        } = self;
        let path = path.display();
        format!("sqlite:{path}?journal={journal}&synchronous={synchronous}")
    }

    fn failed(&self, error: &rusqlite::Error) -> EngineError {
        let remedy = match error.sqlite_error_code() {
            Some(ErrorCode::CannotOpen) => {
                "is its folder there? --init makes the data of a workload"
            }
            Some(ErrorCode::NotADatabase) => "name a file of SQLite's, or one that is not there",
            Some(ErrorCode::DatabaseBusy) => "does another program use it?",
            _ => "see what SQLite says of this, and whether the data is the workload's",
        };
        EngineError {
            place: self.place(),
            why: error.to_string(),
            remedy,
        }
    }
}

/// A database with the statements of a workload.
#[derive(Debug, Clone)]
pub struct Sqlite {
    address: Address,
    /// By set.
    statements: Arc<[Vec<Sql>]>,
}

impl Sqlite {
    pub fn new(address: Address, workload: &dyn Workload) -> Self {
        let set = |set| workload.statements(set).iter().map(Sql::of).collect();
        Self {
            address,
            statements: (0..workload.sets()).map(set).collect(),
        }
    }
}

impl Embedded for Sqlite {
    fn place(&self) -> String {
        self.address.place()
    }

    fn refuses_processes(&self) -> Option<&'static str> {
        None
    }

    fn open(&self) -> Result<Arc<dyn Engine>, EngineError> {
        let connection = connect(&self.address, OpenFlags::empty())?;
        let failed = |error| self.address.failed(&error);
        for sql in self.statements.iter().flatten() {
            connection.prepare(&sql.text).map_err(failed)?;
        }
        Ok(Arc::new(self.clone()))
    }
}

impl Engine for Sqlite {
    fn session(
        &self,
        number: u64,
        life: &mut dyn FnMut(&mut dyn EngineSession),
    ) -> Result<(), EngineError> {
        let failed = |error| self.address.failed(&error);
        let connection = connect(&self.address, OpenFlags::empty())?;
        let statements = &self.statements[number as usize % self.statements.len()];
        let prepared = statements.iter().map(|it| Prepared::new(&connection, it));
        let prepared: rusqlite::Result<_> = prepared.collect();
        let mut session = Session::new(&connection, prepared.map_err(failed)?);
        WAITS.set(0);
        life(&mut session);
        drop(session);
        connection.close().map_err(|(_, error)| failed(error))
    }
}

/// Opens a connection with the settings of an address.
pub fn connect(address: &Address, more: OpenFlags) -> Result<Connection, EngineError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    let open = |path: &Path| {
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_handler(Some(wait))?;
        connection.pragma_update_and_check(None, "journal_mode", address.journal, |row| {
            row.get::<_, String>(0)
        })?;
        connection.pragma_update(None, "synchronous", address.synchronous)?;
        connection.pragma_update(None, "cache_size", -i64::from(CACHE_KIB))?;
        Ok(connection)
    };
    open(&address.path).map_err(|error| address.failed(&error))
}

/// Waits for others, as SQLite's own handler does, and counts how often it began to.
fn wait(steps: i32) -> bool {
    if steps == 0 {
        WAITS.set(WAITS.get() + 1);
    }
    let step = usize::try_from(steps).unwrap_or(0);
    let delay = DELAYS_MS[step.min(DELAYS_MS.len() - 1)];
    thread::sleep(Duration::from_millis(delay));
    steps < STEPS_MAX
}
