//! The whole program against real PostgreSQL servers, where some are installed.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::common::{Ended, load, load_with, start};
use crate::postgresql::{PostgreSql, installed};

const SIZE: &str = "--sessions 8 --threads 2 --transactions 400";

#[test]
fn the_oldest_and_the_newest_version_preserve_the_invariants() {
    let installed = installed();
    let both = installed
        .iter()
        .take(1)
        .chain(installed.iter().skip(1).last());
    for tools in both {
        let server = PostgreSql::start_of(tools.clone());
        let over_tcp = server.address("postgres", "postgres");
        for (address, workload, checks) in [
            (&over_tcp, "--workload tpcb-strict --files 2", 18.0),
            (&server.local_address(), "--round-trips one", 9.0),
        ] {
            let arguments = format!("{workload} --init --verify {SIZE}");
            let ended = load(address, &arguments).ok();
            assert_eq!(ended.indicator("operations"), 400.0, "{}", tools.display());
            assert_eq!(ended.indicator("checks_held"), checks);
            assert_eq!(ended.indicator("transactions_found"), 400.0);
        }
    }
}

#[test]
fn each_workload_keeps_the_data_consistent() {
    let Some(server) = PostgreSql::start() else {
        return;
    };
    let address = server.local_address();
    let found = |ended: &Ended| ended.indicator("transactions_found");
    for workload in ["tpcb-rw3", "tpcb-strict", "tpcb-like", "update"] {
        let arguments = format!("--workload {workload} --init --verify {SIZE}");
        assert_eq!(found(&load(&address, &arguments).ok()), 400.0, "{workload}");
        // On the same data; what was there before is not counted.
        let again = format!("--workload {workload} --verify {SIZE}");
        assert_eq!(found(&load(&address, &again).ok()), 400.0, "{workload}");
    }
    let ended = load(&address, &format!("--workload read --verify {SIZE}")).ok();
    assert_eq!(ended.indicator("operations"), 400.0);
}

#[test]
fn new_texts_have_the_same_effect_as_prepared_statements() {
    let Some(server) = PostgreSql::start() else {
        return;
    };
    let address = server.local_address();
    for (options, trips) in [
        ("", json!([7])),
        ("--new-statements 0.3", json!([7, 7])),
        ("--new-statements 1", json!([7])),
        ("--new-statements 0.5 --round-trips one", json!([1, 1])),
    ] {
        let arguments = format!("--workload loop {options} --init --verify {SIZE}");
        let ended = load(&address, &format!("{arguments} --accounts 500")).ok();
        assert_eq!(ended.indicator("transactions_found"), 400.0, "{options}");
        assert_eq!(*ended.fact("round_trips_per_transaction"), trips);
    }
    // Nothing but texts: there is nothing to prepare.
    let only = "--workload read --new-statements 1 --accounts 500";
    let ended = load(&address, &format!("{only} {SIZE}")).ok();
    assert_eq!(ended.indicator("operations"), 400.0);
}

#[test]
fn only_own_data_is_overwritten_and_only_on_request() {
    let Some(server) = PostgreSql::start() else {
        return;
    };
    let address = server.local_address();
    let refused = |arguments: &str| {
        let ended = load(&address, arguments);
        assert_eq!(ended.output.status.code(), Some(2), "{}", ended.stderr());
        ended.stderr()
    };
    let text = refused("--transactions 8");
    assert!(
        text.contains("no data yet (schema concurve): --init makes it"),
        "{text}"
    );
    assert!(
        text.contains(&format!("try: concurve-load '{address}' --workload")),
        "{text}"
    );
    assert!(
        text.contains("--files 1 --init-only, then this command again"),
        "{text}"
    );

    load(&address, "--init-only --scale 2").ok();
    assert!(refused("--transactions 8").contains("--scale 2 --files 1, and not for"));
    let rows = "SELECT count(*) FROM concurve.accounts_1";
    assert_eq!(server.ask(rows), "200000");
    load(&address, "--init-only").ok();
    assert_eq!(server.ask(rows), "100000");

    server.ask("CREATE TABLE concurve.own (id int)");
    let ended = load(&address, "--init-only");
    assert!(
        ended.stderr().contains("cannot drop schema"),
        "{}",
        ended.stderr()
    );
    server.ask("DROP SCHEMA concurve CASCADE; CREATE SCHEMA concurve");
    for arguments in ["--init", "--transactions 8", "--verify-only"] {
        assert!(
            refused(arguments).contains("was not made by concurve-load"),
            "{arguments}"
        );
    }
}

#[test]
fn a_refused_log_in_is_reported_with_a_remedy() {
    let Some(server) = PostgreSql::start() else {
        return;
    };
    server.ask(
        "SET password_encryption = 'md5'; CREATE ROLE md5 LOGIN PASSWORD 'secret';
         SET password_encryption = 'scram-sha-256'; CREATE ROLE scram LOGIN PASSWORD 'secret';
         CREATE ROLE plain LOGIN PASSWORD 'secret'",
    );
    let variables = [("PASSWORD", "secret"), ("WRONG", "wrong")];
    let asked = |user: &str, database: &str, password: Option<&str>| {
        let mut arguments = vec![
            "--command",
            "SELECT 1",
            "--sessions",
            "3",
            "--transactions",
            "9",
        ];
        arguments.extend(password.iter().flat_map(|it| ["--password-from", it]));
        load_with(&server.address(user, database), &arguments, &variables)
    };
    for user in ["md5", "scram", "plain", "postgres"] {
        let ended = asked(user, "postgres", Some("PASSWORD")).ok();
        assert_eq!(ended.indicator("operations"), 9.0, "{user}");
    }
    for (user, database, password, why) in [
        (
            "md5",
            "postgres",
            Some("WRONG"),
            "password authentication failed",
        ),
        (
            "scram",
            "postgres",
            Some("WRONG"),
            "password authentication failed",
        ),
        (
            "scram",
            "postgres",
            None,
            "it asks for the password of \"scram\"",
        ),
        ("nobody", "postgres", None, "lets this user in without TLS"),
        ("postgres", "nowhere", None, "a database is named in"),
        (
            "postgres",
            "postgres?nonsense=1",
            None,
            "settings behind the ?",
        ),
    ] {
        let ended = asked(user, database, password);
        assert_eq!(ended.output.status.code(), Some(1));
        assert!(ended.stderr().contains(why), "{user}: {}", ended.stderr());
    }
}

#[test]
fn deadlocks_are_errors_by_kind_and_leave_nothing_behind() {
    let Some(server) = PostgreSql::start() else {
        return;
    };
    server
        .ask("CREATE TABLE a (id int PRIMARY KEY, b bigint); INSERT INTO a VALUES (0, 0), (1, 0)");
    let forth = "UPDATE a SET b = b + 1 WHERE id = {session} % 2";
    let back = "UPDATE a SET b = b + 1 WHERE id = 1 - {session} % 2";
    let commands = ["BEGIN", forth, back, "COMMIT"];
    let mut arguments: Vec<&str> = commands.iter().flat_map(|it| ["--command", it]).collect();
    arguments.extend(["--sessions", "8", "--transactions", "500"]);
    let address = format!("{}&deadlock_timeout=1ms", server.local_address());
    let ended = load_with(&address, &arguments, &[]).ok();
    let done = ended.indicator("operations") as i64;
    assert_eq!(done + ended.indicator("errors") as i64, 500);
    assert!(ended.stderr().is_empty() || done < 500);
    let text = ended.stdout();
    assert!(
        done == 500 || text.contains("40P01 deadlock detected"),
        "{text}"
    );
    assert_eq!(server.ask("SELECT sum(b) FROM a"), (2 * done).to_string());
}

/// Until the data holds so many transactions.
fn wait_for(server: &PostgreSql, transactions: u64) {
    let deadline = Instant::now() + Duration::from_secs(180);
    let count = || server.ask("SELECT count(*) FROM concurve.history_1");
    while count().parse::<u64>().unwrap() < transactions {
        assert!(Instant::now() < deadline, "no transactions come");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_session_that_the_server_ends_is_lost_and_its_transaction_in_doubt() {
    let Some(server) = PostgreSql::start() else {
        return;
    };
    let address = server.local_address();
    load(&address, "--init-only --workload tpcb-strict").ok();
    let ledger = server.file("ledger");
    let child = start(
        &address,
        &[
            "--workload",
            "tpcb-strict",
            "--sessions",
            "8",
            "--duration",
            "2s",
            "--verify",
            "--ledger",
            &ledger,
            "--json",
        ],
    );
    wait_for(&server, 100);
    let victims = "FROM pg_stat_activity WHERE application_name = 'concurve-load' LIMIT 3";
    server.ask(&format!("SELECT pg_terminate_backend(pid) {victims}"));
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let figures: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(figures["sessions_lost"], 3, "{figures}");
    let reasons = figures["sessions_lost_by_reason"].as_object().unwrap();
    assert!(
        reasons.keys().all(|it| it.starts_with("57P01 (")),
        "{figures}"
    );
    load(
        &address,
        &format!("--workload tpcb-strict --verify-only --ledger {ledger}"),
    )
    .ok();
}

#[test]
fn after_a_crash_no_transaction_is_lost_that_was_acknowledged() {
    let Some(mut server) = PostgreSql::start() else {
        return;
    };
    let address = server.local_address();
    load(&address, "--init-only").ok();
    let ledger = server.file("ledger");
    let arguments = ["--sessions", "8", "--duration", "10m", "--ledger", &ledger];
    let child = start(&address, &arguments);
    wait_for(&server, 200);
    server.crash();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no session is left"), "{said}");

    server.restart();
    let verify = format!("--verify-only --ledger {ledger}");
    let ended = load(&address, &verify).ok();
    assert!(ended.indicator("transactions_found") >= 200.0);

    server.ask("DELETE FROM concurve.history_1 WHERE ctid IN (SELECT ctid FROM concurve.history_1 LIMIT 20)");
    let ended = load(&address, &verify);
    assert_eq!(ended.output.status.code(), Some(1));
    let said = ended.stderr();
    assert!(
        said.contains("add up to the deltas") && said.contains("lost"),
        "{said}"
    );
}
