//! SQLite. Each session has a connection of its own, with statements prepared once.

use std::cell::Cell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

use super::interface::{EmbeddedEngine, EngineError, EngineSession, OpenEngine};
use super::query::Query;
use crate::admin::{AdminAccess, AdminConnection, AdminError};
use crate::stop::Stop;
use crate::workload::{Answer, Parameters, Workload};

mod statement;
#[cfg(test)]
mod tests;

use statement::{Prepared, Sql};

pub const FORMS: &str = "sqlite:PATH?journal=wal|delete&synchronous=full|normal|off";

/// Cache of a session: enough for the data of a study.
const CACHE_KIB: u32 = 32 << 10;
/// How long a session waits between attempts while another one holds the lock, in ms: SQLite's own
/// delays; the last one is repeated.
const DELAYS_MS: [u64; 12] = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100];
/// After so many attempts, about a minute, it fails with `SQLITE_BUSY`.
const ATTEMPTS_MAX: i32 = 600;

thread_local! {
    /// How often this thread's session found the database locked.
    static WAITS: Cell<u64> = const { Cell::new(0) };
}

/// The file of the database, and the settings of the connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteAddress {
    path: PathBuf,
    journal: &'static str,
    synchronous: &'static str,
}

impl SqliteAddress {
    /// Parses what follows `sqlite:`.
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

    fn name(&self) -> String {
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
            Some(ErrorCode::NotADatabase) => "name a file that SQLite has created, or a new file",
            Some(ErrorCode::DatabaseBusy) => "does another program use it?",
            _ => "see SQLite's message, and check whether the data belongs to the workload",
        };
        EngineError {
            engine: self.name(),
            why: error.to_string(),
            remedy,
        }
    }
}

/// A database with the statements of a workload.
#[derive(Debug, Clone)]
pub struct SqliteEngine {
    address: SqliteAddress,
    /// By set.
    statements: Arc<[Vec<Sql>]>,
}

impl SqliteEngine {
    pub fn new(address: SqliteAddress, workload: &dyn Workload) -> Self {
        let set = |set| workload.statements(set).iter().map(Sql::of).collect();
        Self {
            address,
            statements: (0..workload.sets()).map(set).collect(),
        }
    }
}

impl EmbeddedEngine for SqliteEngine {
    fn name(&self) -> String {
        self.address.name()
    }

    fn refuses_processes(&self) -> Option<&'static str> {
        None
    }

    fn open(&self) -> Result<Arc<dyn OpenEngine>, EngineError> {
        let connection = connect(&self.address, OpenFlags::empty())?;
        let failed = |error| self.address.failed(&error);
        for sql in self.statements.iter().flatten() {
            connection.prepare(&sql.text).map_err(failed)?;
        }
        Ok(Arc::new(self.clone()))
    }
}

impl OpenEngine for SqliteEngine {
    fn session(
        &self,
        number: u64,
        run: &mut dyn FnMut(&mut dyn EngineSession),
    ) -> Result<(), EngineError> {
        let failed = |error| self.address.failed(&error);
        let connection = connect(&self.address, OpenFlags::empty())?;
        let statements = &self.statements[number as usize % self.statements.len()];
        let prepared = statements.iter().map(|it| Prepared::new(&connection, it));
        let prepared: rusqlite::Result<_> = prepared.collect();
        let mut session = Session::new(&connection, prepared.map_err(failed)?);
        WAITS.set(0);
        run(&mut session);
        drop(session);
        connection.close().map_err(|(_, error)| failed(error))
    }
}

/// Opens a connection with the settings of an address.
fn connect(address: &SqliteAddress, more: OpenFlags) -> Result<Connection, EngineError> {
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

/// Waits for the lock, as SQLite's own busy handler does, and counts the first attempt.
fn wait(attempts: i32) -> bool {
    if attempts == 0 {
        WAITS.set(WAITS.get() + 1);
    }
    let attempt = usize::try_from(attempts).unwrap_or(0);
    let delay = DELAYS_MS[attempt.min(DELAYS_MS.len() - 1)];
    thread::sleep(Duration::from_millis(delay));
    attempts < ATTEMPTS_MAX
}

/// A connection and its statements.
struct Session<'a> {
    connection: &'a Connection,
    statements: Vec<Prepared<'a>>,
}

impl<'a> Session<'a> {
    fn new(connection: &'a Connection, statements: Vec<Prepared<'a>>) -> Self {
        Self {
            connection,
            statements,
        }
    }
}

impl EngineSession for Session<'_> {
    fn execute(&mut self, statements: Range<usize>, parameters: &Parameters) -> Answer {
        let mut answer = Answer::Nothing;
        for prepared in &mut self.statements[statements] {
            match prepared.execute(parameters) {
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
            // This fails if the error has already rolled the transaction back.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

/// The name of an error in SQLite's documentation, for errors that a load may cause.
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

impl AdminAccess for SqliteAddress {
    fn open(&self, create: bool, _stop: &Stop) -> Result<Box<dyn AdminConnection>, AdminError> {
        let more = match create {
            true => OpenFlags::SQLITE_OPEN_CREATE,
            false => OpenFlags::empty(),
        };
        Ok(Box::new(SqliteAdmin(connect(self, more)?)))
    }
}

struct SqliteAdmin(Connection);

impl AdminConnection for SqliteAdmin {
    fn execute(&mut self, statement: &str) -> Result<Option<i64>, AdminError> {
        let row = self.0.query_row(statement, [], |row| row.get(0));
        row.optional()
            .map(Option::flatten)
            .map_err(|error| AdminError::refused(statement, error.to_string()))
    }
}
