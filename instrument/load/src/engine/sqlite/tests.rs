use super::*;
use crate::workload::{Piece, Statement};

const TABLE: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, f TEXT)";

fn address(folder: &tempfile::TempDir) -> SqliteAddress {
    let path = folder.path().join("data.db");
    let address = SqliteAddress::parse(&format!("{}?synchronous=off", path.display()));
    let address = address.unwrap();
    let made = connect(&address, OpenFlags::SQLITE_OPEN_CREATE).unwrap();
    made.execute_batch(TABLE).unwrap();
    address
}

fn sqlite(address: SqliteAddress, statements: &[&str]) -> SqliteEngine {
    let placeholders = [
        ("a", vec![Piece::Parameter(0)]),
        ("b", vec![Piece::Parameter(1)]),
        ("f", vec![Piece::Bytes(b"a 'filler'".to_vec())]),
    ];
    let parsed = statements
        .iter()
        .map(|it| Statement::parse(it, &placeholders));
    let parsed: Vec<Statement> = parsed.map(Result::unwrap).collect();
    SqliteEngine {
        address,
        statements: Arc::from([parsed.iter().map(Sql::of).collect::<Vec<_>>()]),
    }
}

fn parameters(a: i64, b: i64) -> Parameters {
    [a, b].into()
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
    let mut run = |session: &mut dyn EngineSession| {
        let mut ask = |which, parameters| session.execute(which, &parameters);
        assert_eq!(ask(0..1, parameters(7, 40)), Answer::Done(None));
        assert_eq!(ask(1..2, parameters(7, 0)), Answer::Done(Some(40)));
        // A round trip of two statements has the answer of the last.
        let reversed = ask(2..4, parameters(7, 2));
        assert_eq!(reversed, Answer::Done(None));
        assert_eq!(ask(1..2, parameters(7, 0)), Answer::Done(Some(42)));
        assert_eq!(ask(1..2, parameters(8, 0)), Answer::Nothing);
        assert_eq!(ask(2..3, parameters(8, 0)), Answer::Nothing);
    };
    engine.session(0, &mut run).unwrap();
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
    let mut run = |session: &mut dyn EngineSession| {
        let twice = session.execute(0..4, &parameters(1, 2));
        assert_eq!(twice, Answer::Error("SQLITE_CONSTRAINT".to_owned()));
        let other = connect(&address, OpenFlags::empty()).unwrap();
        // Nobody holds the lock: this waits for nothing.
        other.execute_batch("BEGIN IMMEDIATE; END").unwrap();
        let count = |sql| other.query_row(sql, [], |row| row.get::<_, i64>(0));
        assert_eq!(count("SELECT count(*) FROM t").unwrap(), 0);
        assert_eq!(session.waits(), 0);
    };
    engine.session(0, &mut run).unwrap();
}

#[test]
fn what_cannot_be_prepared_is_reported_before_a_session_begins() {
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
    assert!(!wait(ATTEMPTS_MAX));
}
