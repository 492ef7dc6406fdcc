//! SQLite. Each session has a connection of its own, with statements prepared once.

use std::cell::Cell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::query::Query;
use super::{Embedded, Engine, EngineError, EngineSession};
use crate::workload::statement::Piece;
use crate::workload::{Answer, Numbers, Statement, Workload};

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

/// A statement in SQLite's words.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sql {
    text: String,
    /// What stands for its parameters, from the first.
    parameters: Vec<Parameter>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Parameter {
    Number(usize),
    Bytes(Vec<u8>),
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

impl Sql {
    fn of(statement: &Statement) -> Self {
        let (mut text, mut parameters) = (String::new(), Vec::new());
        for piece in &statement.pieces {
            match piece {
                Piece::Text(part) => {
                    text.push_str(part);
                    continue;
                }
                Piece::Number(slot) => parameters.push(Parameter::Number(*slot)),
                Piece::Bytes(bytes) => parameters.push(Parameter::Bytes(bytes.clone())),
            }
            text.push('?');
        }
        Self { text, parameters }
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
        let prepared = statements.iter().map(|it| prepare(&connection, it));
        let mut session = Session {
            statements: prepared.collect::<Result<_, _>>().map_err(failed)?,
            connection: &connection,
        };
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

/// A connection and its statements.
struct Session<'a> {
    connection: &'a Connection,
    statements: Vec<Prepared<'a>>,
}

struct Prepared<'a> {
    statement: rusqlite::Statement<'a>,
    /// Parameters from 1, and the slots of their numbers.
    numbers: Vec<(usize, usize)>,
    has_rows: bool,
    changes_rows: bool,
}

fn prepare<'a>(connection: &'a Connection, sql: &Sql) -> rusqlite::Result<Prepared<'a>> {
    let mut statement = connection.prepare(&sql.text)?;
    let mut numbers = Vec::new();
    for (index, parameter) in sql.parameters.iter().enumerate() {
        match parameter {
            Parameter::Number(slot) => numbers.push((index + 1, *slot)),
            Parameter::Bytes(bytes) => {
                let text = String::from_utf8_lossy(bytes);
                statement.raw_bind_parameter(index + 1, text)?;
            }
        }
    }
    Ok(Prepared {
        has_rows: statement.column_count() > 0,
        changes_rows: changes_rows(&sql.text),
        statement,
        numbers,
    })
}

/// Whether SQLite counts the rows that a statement changes: for others it tells an older count.
fn changes_rows(sql: &str) -> bool {
    let verb = sql.split_ascii_whitespace().next().unwrap_or("");
    ["INSERT", "UPDATE", "DELETE", "REPLACE"]
        .iter()
        .any(|it| verb.eq_ignore_ascii_case(it))
}

impl Prepared<'_> {
    fn execute(&mut self, numbers: &Numbers) -> rusqlite::Result<Answer> {
        for (index, slot) in &self.numbers {
            self.statement.raw_bind_parameter(*index, numbers[*slot])?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::statement::Piece;

    const TABLE: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, f TEXT)";

    fn address(folder: &tempfile::TempDir) -> Address {
        let path = folder.path().join("data.db");
        let address = Address::parse(&format!("{}?synchronous=off", path.display()));
        let address = address.unwrap();
        let made = connect(&address, OpenFlags::SQLITE_OPEN_CREATE).unwrap();
        made.execute_batch(TABLE).unwrap();
        address
    }

    fn sqlite(address: Address, statements: &[&str]) -> Sqlite {
        let places = [
            ("a", vec![Piece::Number(0)]),
            ("b", vec![Piece::Number(1)]),
            ("f", vec![Piece::Bytes(b"a 'filler'".to_vec())]),
        ];
        let parsed = statements.iter().map(|it| Statement::parse(it, &places));
        let parsed: Vec<Statement> = parsed.map(Result::unwrap).collect();
        Sqlite {
            address,
            statements: Arc::from([parsed.iter().map(Sql::of).collect::<Vec<_>>()]),
        }
    }

    fn numbers(a: i64, b: i64) -> Numbers {
        [a, b, 0, 0, 0, 0, 0, 0]
    }

    #[test]
    fn answers_are_numbers_of_rows_or_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let statements = [
            "INSERT INTO t VALUES ({a}, {b}, {f})",
            "SELECT v FROM t WHERE id = {a} AND f = {f}",
            "UPDATE t SET v = v + {b} WHERE id = {a}",
            "SELECT f FROM t WHERE id = {a}",
        ];
        let engine = sqlite(address(&folder), &statements).open().unwrap();
        let mut life = |session: &mut dyn EngineSession| {
            let mut ask = |which, numbers| session.execute(which, &numbers);
            assert_eq!(ask(0..1, numbers(7, 40)), Answer::Done(None));
            assert_eq!(ask(1..2, numbers(7, 0)), Answer::Done(Some(40)));
            // A trip of two statements has the answer of the last.
            let reversed = ask(2..4, numbers(7, 2));
            assert_eq!(reversed, Answer::Done(None));
            assert_eq!(ask(1..2, numbers(7, 0)), Answer::Done(Some(42)));
            assert_eq!(ask(1..2, numbers(8, 0)), Answer::Nothing);
            assert_eq!(ask(2..3, numbers(8, 0)), Answer::Nothing);
        };
        engine.session(0, &mut life).unwrap();
    }

    #[test]
    fn after_an_error_no_transaction_is_open_and_the_rest_is_not_done() {
        let folder = tempfile::tempdir().unwrap();
        let address = address(&folder);
        let statements = [
            "BEGIN IMMEDIATE",
            "INSERT INTO t VALUES ({a}, {b}, {f})",
            "INSERT INTO t VALUES ({a}, {b}, {f})",
            "INSERT INTO t VALUES ({b}, {b}, {f})",
        ];
        let engine = sqlite(address.clone(), &statements).open().unwrap();
        let mut life = |session: &mut dyn EngineSession| {
            let twice = session.execute(0..4, &numbers(1, 2));
            assert_eq!(twice, Answer::Error("SQLITE_CONSTRAINT".to_owned()));
            let other = connect(&address, OpenFlags::empty()).unwrap();
            // Nobody holds the lock: this waits for nothing.
            other.execute_batch("BEGIN IMMEDIATE; END").unwrap();
            let count = |sql| other.query_row(sql, [], |row| row.get::<_, i64>(0));
            assert_eq!(count("SELECT count(*) FROM t").unwrap(), 0);
            assert_eq!(session.waits(), 0);
        };
        engine.session(0, &mut life).unwrap();
    }

    #[test]
    fn what_cannot_be_prepared_is_told_before_a_session_begins() {
        let folder = tempfile::tempdir().unwrap();
        let sqlite = sqlite(address(&folder), &["SELECT x FROM t"]);
        let said = sqlite.open().unwrap_err().to_string();
        assert!(said.contains("no such column: x"), "{said}");
    }

    #[test]
    fn a_wait_counts_once_and_ends() {
        WAITS.set(0);
        assert!(wait(0) && wait(1));
        assert_eq!(WAITS.get(), 1);
        assert!(!wait(STEPS_MAX));
    }
}
