//! Data in a database in memory: made, inspected, broken and verified.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rusqlite::{Connection, OptionalExtension};

use super::ledger::Counts;
use super::*;
use crate::workload::tpcb::dialect::Dialect;
use crate::workload::tpcb::{ACCOUNTS, Bank, BankData, Profile, RoundTrips, Tpcb, sql};
use crate::workload::{Piece, Workload};

const DIALECT: &sql::Sql = &sql::SQLITE;

struct Memory(Connection);

impl AdminConnection for Memory {
    fn execute(&mut self, statement: &str) -> Result<Option<i64>, AdminError> {
        let row = self.0.query_row(statement, [], |row| row.get(0));
        row.optional()
            .map(Option::flatten)
            .map_err(|error| AdminError::refused(statement, error.to_string()))
    }
}

fn memory() -> Memory {
    Memory(Connection::open_in_memory().unwrap())
}

fn data(profile: Profile, scale: u32, files: u32) -> BankData {
    BankData {
        profile,
        scale,
        accounts: ACCOUNTS,
        files,
    }
}

fn bank(data: BankData) -> Bank {
    Bank {
        data,
        dialect: DIALECT,
    }
}

fn made(data: BankData) -> Memory {
    let mut memory = memory();
    for statement in DIALECT.make(data) {
        memory.execute(&statement).unwrap();
    }
    memory
}

/// Executes transactions of the workload, as the sessions of each set do.
fn execute_transactions(memory: &mut Memory, data: BankData, transactions: u64) {
    let tpcb = Tpcb::new(data, DIALECT, RoundTrips::Each, 0.0).unwrap();
    let mut random = SmallRng::seed_from_u64(1);
    for number in 0..transactions {
        let set = number as usize % tpcb.sets();
        let parameters = tpcb.generator(number).begin(0, &mut random);
        for statement in tpcb.statements(set) {
            let text = statement.pieces.iter().map(|piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Parameter(slot) | Piece::Digits { slot, .. } => {
                    parameters[*slot].to_string()
                }
                Piece::Bytes(_) => unreachable!("none in SQL"),
            });
            memory.execute(&text.collect::<String>()).unwrap();
        }
    }
}

fn found(memory: &mut Memory) -> Found {
    // Which data is needed does not change what is found.
    Found::at(memory, &bank(data(Profile::Rw3, 1, 1))).unwrap()
}

/// The options of the data that was found, if it is what is needed.
fn expected(memory: &mut Memory, needed: BankData) -> Result<String, Refusal> {
    let found = found(memory).expect(&bank(needed));
    found.map(|it| it.options())
}

fn verified(
    memory: &mut Memory,
    data: BankData,
    ledger: Option<&Ledger>,
) -> Result<Verified, String> {
    verify(memory, &bank(data), ledger, &Stop::new().unwrap()).map_err(|error| error.to_string())
}

#[test]
fn data_is_found_as_it_was_made() {
    let mut memory = memory();
    assert_eq!(found(&mut memory), Found::Nothing);
    let data = data(Profile::Rw3, 1, 2);
    memory = made(data);
    assert_eq!(
        found(&mut memory),
        Found::Made(vec![1, 1, i64::from(ACCOUNTS), 2])
    );
    assert_eq!(expected(&mut memory, data), Ok(bank(data).options()));
    assert_eq!(verified(&mut memory, data, None).unwrap().checks, 2 * 9);
    for statement in DIALECT.drop_all() {
        memory.execute(&statement).unwrap();
    }
    assert_eq!(found(&mut memory), Found::Nothing);
}

#[test]
fn data_of_other_programs_are_left_alone() {
    for table in [
        "CREATE TABLE concurve_customers (id int)",
        "CREATE TABLE concurve_marks (school text)",
        "CREATE TABLE concurve_marks (name text, number int)",
    ] {
        let mut memory = memory();
        memory.execute(table).unwrap();
        let refusal = found(&mut memory)
            .may_be_replaced(DIALECT.location())
            .unwrap_err();
        assert!(
            refusal.to_string().contains("does not replace it"),
            "{table}"
        );
    }
}

#[test]
fn missing_incomplete_or_different_data_is_refused_with_a_remedy() {
    let asked = data(Profile::Strict, 1, 2);
    let refused = |memory: &mut Memory| expected(memory, asked).unwrap_err().to_string();
    let words = "--workload tpcb-strict --scale 1 --files 2";
    let text = refused(&mut memory());
    assert!(
        text.contains("--init makes it") && text.contains(words),
        "{text}"
    );

    let mut half = memory();
    for statement in DIALECT.make(asked).take(5) {
        half.execute(&statement).unwrap();
    }
    assert!(refused(&mut half).contains("is incomplete"));
    let replaced = found(&mut half).may_be_replaced(DIALECT.location());
    assert_eq!(replaced, Ok(true));

    half.execute("UPDATE concurve_marks SET number = 9")
        .unwrap();
    assert!(refused(&mut half).contains("another version (format 9)"));

    let text = refused(&mut made(data(Profile::Like, 1, 1)));
    let other = "--workload tpcb-like --scale 1 --files 1, and not for --workload tpcb-strict";
    assert!(text.contains(other), "{text}");
}

/// The remedy of a load on data of another size or workload keeps the workload that was asked for, if
/// that can use them: one that reads does not become one that writes.
#[test]
fn the_remedy_uses_the_data_by_the_workload_that_was_asked_for() {
    let used = |asked: Profile, made_for: Profile| {
        let needed = bank(data(asked, 64, 1));
        let found = Found::at(&mut made(data(made_for, 2, 1)), &needed).unwrap();
        match found.expect(&needed) {
            Err(Refusal::Different { usable, .. }) => usable,
            other => panic!("{other:?}"),
        }
    };
    for (asked, made_for, workload) in [
        (Profile::Read, Profile::Like, "read"),
        (Profile::Read, Profile::Read, "read"),
        (Profile::Like, Profile::Like, "tpcb-like"),
        (Profile::Update, Profile::Like, "tpcb-like"),
        (Profile::Like, Profile::Read, "read"),
    ] {
        let options = format!("--workload {workload} --scale 2 --files 1");
        assert_eq!(used(asked, made_for), options, "{asked:?} on {made_for:?}");
    }
}

#[test]
fn branches_may_have_fewer_accounts() {
    let small = BankData {
        accounts: 1_000,
        ..data(Profile::Strict, 3, 1)
    };
    let mut memory = made(small);
    let rows = "SELECT count(*) FROM concurve_accounts_1 WHERE bid = 3";
    assert_eq!(memory.execute(rows).unwrap(), Some(1_000));
    assert_eq!(expected(&mut memory, small), Ok(bank(small).options()));
    let asked = data(Profile::Strict, 3, 1);
    let text = expected(&mut memory, asked).unwrap_err();
    let words = "--workload tpcb-strict --scale 3 --accounts 1000 --files 1";
    assert!(text.to_string().contains(words), "{text}");
}

/// A database that stops the run after so many statements.
struct Stops {
    memory: Memory,
    left: u32,
    stop: Stop,
}

impl AdminConnection for Stops {
    fn execute(&mut self, statement: &str) -> Result<Option<i64>, AdminError> {
        match self.left {
            0 => self.stop.now(),
            _ => self.left -= 1,
        }
        self.memory.execute(statement)
    }
}

#[test]
fn making_data_ends_when_the_run_is_stopped() {
    #[derive(Debug)]
    struct Nowhere;
    impl AdminAccess for Nowhere {
        fn open(&self, _: bool, _: &Stop) -> Result<Box<dyn AdminConnection>, AdminError> {
            unreachable!("the connection is given")
        }
    }
    let bank = bank(data(Profile::Rw3, 4, 1));
    let in_database = DatasetInDatabase {
        dataset: Arc::new(bank),
        admin: Arc::new(Nowhere),
        command: String::new(),
    };
    let stop = Stop::new().unwrap();
    let mut connection = Stops {
        memory: memory(),
        left: 5,
        stop: stop.clone(),
    };
    let made = in_database.make(&mut connection, &stop);
    assert!(
        matches!(made, Err(DatasetError::Admin(AdminError::Stopped))),
        "{made:?}"
    );
    assert_eq!(found(&mut connection.memory), Found::Incomplete);
}

#[test]
fn verifying_ends_when_the_run_is_stopped_and_keeps_what_does_not_hold() {
    let data = data(Profile::Rw3, 1, 1);
    let stopped_after = |memory: Memory, left: u32| {
        let stop = Stop::new().unwrap();
        let mut connection = Stops {
            memory,
            left,
            stop: stop.clone(),
        };
        verify(&mut connection, &bank(data), None, &stop)
    };
    for left in [0, 4] {
        let verified = stopped_after(made(data), left);
        assert!(
            matches!(verified, Err(VerifyError::Admin(AdminError::Stopped))),
            "{verified:?}"
        );
    }
    let mut broken = made(data);
    broken.execute("DELETE FROM concurve_accounts_1").unwrap();
    let verified = stopped_after(broken, 4);
    assert!(
        matches!(verified, Err(VerifyError::Broken(_))),
        "{verified:?}"
    );

    let stop = Stop::new().unwrap();
    stop.now();
    let counted = committed(&mut made(data), &bank(data), &stop);
    assert!(matches!(counted, Err(AdminError::Stopped)), "{counted:?}");
}

#[test]
fn transactions_preserve_the_invariants_and_are_counted() {
    for (profile, checks) in [
        (Profile::Rw3, 9),
        (Profile::Strict, 9),
        (Profile::Like, 6),
        (Profile::Update, 3),
    ] {
        let data = data(profile, 1, 2);
        let mut memory = made(data);
        execute_transactions(&mut memory, data, 50);
        let before = committed(&mut memory, &bank(data), &Stop::new().unwrap()).unwrap();
        assert_eq!(before, Some(50), "{profile:?}");
        let mut ledger = Ledger::begin(&bank(data), before);
        execute_transactions(&mut memory, data, 10);
        ledger.end(8, 2);
        let found = Verified {
            checks: 2 * checks,
            found: Some(10),
        };
        assert_eq!(verified(&mut memory, data, Some(&ledger)), Ok(found));
    }
}

#[test]
fn lost_and_additional_transactions_are_reported() {
    let data = data(Profile::Strict, 1, 1);
    let mut memory = made(data);
    execute_transactions(&mut memory, data, 10);
    let mut ledger = Ledger::begin(&bank(data), Some(0));
    for (acknowledged, in_doubt, why) in [(12, 1, "2 lost"), (5, 3, "2 too many")] {
        ledger.end(acknowledged, in_doubt);
        let text = verified(&mut memory, data, Some(&ledger)).unwrap_err();
        assert!(text.contains(why), "{text}");
    }
}

#[test]
fn each_check_detects_its_violation() {
    let data = data(Profile::Strict, 2, 1);
    // What is done to the data, and how many of the checks notice it.
    let breaches = [
        (
            "DELETE FROM concurve_accounts_1 WHERE abalance = 0 AND aid > 199990",
            vec!["has 200000 rows"],
        ),
        (
            "DELETE FROM concurve_tellers_1 WHERE tbalance = 0",
            vec!["has 20 rows"],
        ),
        (
            "UPDATE concurve_accounts_1 SET abalance = abalance + 1 WHERE aid = 7",
            vec!["balances of concurve_accounts_1 add up"],
        ),
        (
            "UPDATE concurve_tellers_1 SET tbalance = tbalance + CASE tid WHEN 1 THEN 1 ELSE -1 END WHERE tid IN (1, 2)",
            vec!["each balance of concurve_tellers_1 is the sum of its deltas"],
        ),
        (
            "UPDATE concurve_branches_1 SET bbalance = bbalance + CASE bid WHEN 1 THEN 1 ELSE -1 END",
            vec![
                "each balance of concurve_branches_1 is the sum of its deltas",
                "each balance of concurve_branches_1 is the sum of its concurve_tellers_1",
            ],
        ),
        (
            "DELETE FROM concurve_history_1 WHERE delta = (SELECT max(delta) FROM concurve_history_1)",
            vec![
                "accounts_1 add up",
                "tellers_1 add up",
                "branches_1 add up",
                "branches_1 is the sum of its deltas",
                "tellers_1 is the sum of its deltas",
            ],
        ),
    ];
    let mut memory = made(data);
    execute_transactions(&mut memory, data, 5);
    assert_eq!(verified(&mut memory, data, None).unwrap().checks, 9);
    for (breach, says) in breaches {
        memory.execute("SAVEPOINT whole").unwrap();
        memory.execute(breach).unwrap();
        let text = verified(&mut memory, data, None).unwrap_err();
        for words in &says {
            assert!(text.contains(words), "{breach}: {text}");
        }
        assert_eq!(text.split("; ").count(), says.len(), "{breach}: {text}");
        memory.execute("ROLLBACK TO whole").unwrap();
    }
}

#[test]
fn all_dialects_ask_the_same_questions() {
    let data = data(Profile::Rw3, 1, 2);
    let claims = |checks: Vec<Check>| -> Vec<String> {
        let claims = checks.into_iter().map(|it| it.claim);
        claims
            .map(|it| it.replace("concurve.", "concurve_"))
            .collect()
    };
    let expected = claims(DIALECT.checks(data));
    assert_eq!(claims(sql::POSTGRES.checks(data)), expected);
    assert_eq!(claims(sql::MYSQL.checks(data)), expected);
}

#[test]
fn a_ledger_is_read_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let (own, other) = (data(Profile::Rw3, 1, 1), data(Profile::Rw3, 2, 1));
    let mut ledger = Ledger::begin(&bank(own), Some(7));
    ledger.write(&path).unwrap();
    assert_eq!(Ledger::read(&path, &bank(own)).unwrap().to_compare(), None);
    let error = Ledger::read_ended(&path, &bank(own)).unwrap_err();
    assert!(
        error.to_string().contains("has not noted its end"),
        "{error}"
    );
    ledger.end(5, 1);
    ledger.write(&path).unwrap();
    let read = Ledger::read_ended(&path, &bank(own)).unwrap();
    let counts = Counts {
        acknowledged: 5,
        in_doubt: 1,
    };
    assert_eq!((&read, read.to_compare()), (&ledger, Some((counts, 7))));

    // Transactions that leave no trace are compared with nothing.
    Ledger::begin(&bank(own), None).write(&path).unwrap();
    assert!(Ledger::read_ended(&path, &bank(own)).is_ok());

    let error = Ledger::read(&path, &bank(other)).unwrap_err().to_string();
    assert!(
        error.contains("--scale 1") && error.contains("--scale 2"),
        "{error}"
    );
    std::fs::write(&path, "{").unwrap();
    assert!(
        Ledger::read(&path, &bank(own))
            .unwrap_err()
            .to_string()
            .contains("same --ledger")
    );
    assert!(ledger.write(&folder.path().join("no/ledger")).is_err());
}
