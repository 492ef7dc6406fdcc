//! The whole program against a real MariaDB, where one is installed.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::common::{Ended, load_with, start};
use crate::mariadb::MariaDb;

/// A server with users of all sorts.
fn server() -> Option<MariaDb> {
    let server = MariaDb::start(&["--max-connections=60"])?;
    server.ask(
        "CREATE USER known@'%' IDENTIFIED BY 'secret'; GRANT ALL ON concurve.* TO known@'%';
         CREATE USER open@'%'; GRANT ALL ON concurve.* TO open@'%';
         CREATE USER tls@'%' IDENTIFIED BY 'secret' REQUIRE SSL;
         INSTALL SONAME 'auth_ed25519';
         CREATE USER modern@'%' IDENTIFIED VIA ed25519 USING PASSWORD('secret');",
    );
    Some(server)
}

/// A run with passwords in environment variables.
fn load(address: &str, arguments: &str) -> Ended {
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let password = [("PASSWORD", "secret"), ("WRONG", "wrong")];
    load_with(address, &arguments, &password)
}

#[test]
fn the_counts_agree_with_the_data_of_the_server() {
    let Some(server) = server() else { return };
    let over_tcp = server.address("known", "");
    let over_socket = format!("mysql://known@/?socket={}", server.socket.display());
    let strict = "--workload tpcb-strict --password-from PASSWORD --verify --sessions 8";
    for (address, arguments, trips) in [
        (&over_tcp, "--init --transactions 300", 7),
        (&over_socket, "--threads 2 --transactions 300", 7),
        (&over_tcp, "--round-trips one --transactions 300", 1),
        (&over_socket, "--processes --transactions 80", 7),
    ] {
        let ended = load(address, &format!("{strict} {arguments}")).ok();
        let done = ended.indicator("operations") + ended.indicator("errors");
        assert!([300.0, 80.0].contains(&done), "{}", ended.stdout());
        assert_eq!(*ended.fact("round_trips_per_transaction"), json!([trips]));
        assert!(ended.stdout().contains("checks hold"), "{}", ended.stdout());
    }

    // Texts that were never seen do what prepared statements do.
    for (options, trips) in [
        ("--new-statements 0.3", json!([7, 7])),
        ("--new-statements 1", json!([7])),
        ("--new-statements 0.5 --round-trips one", json!([1, 1])),
    ] {
        let arguments = format!("{options} --init --transactions 100 --accounts 500");
        let arguments = format!("{strict} --workload loop {arguments}");
        let ended = load(&over_tcp, &arguments.replace("--workload tpcb-strict", "")).ok();
        let done = ended.indicator("operations") + ended.indicator("errors");
        assert_eq!(done, 100.0, "{}", ended.stdout());
        assert_eq!(*ended.fact("round_trips_per_transaction"), trips);
        assert!(ended.stdout().contains("checks hold"), "{}", ended.stdout());
    }

    // Whatever a server's own values are, a transaction ends where it should.
    server.ask("SET GLOBAL autocommit = 0; SET GLOBAL completion_type = 'RELEASE'");
    for workload in ["tpcb-strict", "update"] {
        let arguments = format!("--workload {workload} --init --verify --transactions 50");
        let ended = load(&server.address("open", ""), &arguments).ok();
        assert_eq!(ended.indicator("operations"), 50.0, "{}", ended.stdout());
    }
    server.ask("SET GLOBAL autocommit = 1; SET GLOBAL completion_type = 'NO_CHAIN'");
    load(&over_tcp, &format!("{strict} --init --transactions 1")).ok();

    // Errors inside of transactions leave nothing behind: the server itself rolls back nothing
    // here.
    server.ask(
        "CREATE TRIGGER concurve.fails BEFORE INSERT ON concurve.history_1 FOR EACH ROW
         SET NEW.tid = IF(NEW.aid % 3 = 0, (SELECT 1 UNION SELECT 2), NEW.tid)",
    );
    for trips in ["each", "one"] {
        let arguments = format!("{strict} --round-trips {trips} --transactions 100");
        let ended = load(&over_tcp, &arguments).ok();
        let errors = ended.indicator("errors");
        assert!(errors > 0.0 && ended.indicator("operations") + errors == 100.0);
        let said = ended.stdout();
        assert!(said.contains("× 1242 21000"), "{said}");
        assert!(said.contains("checks hold"), "{said}");
    }
}

#[test]
fn a_refused_log_in_is_reported_with_a_remedy() {
    let Some(server) = server() else { return };
    load(&server.address("root", ""), "--workload read --init-only").ok();
    let known = "--password-from PASSWORD";
    let wrong = "--password-from WRONG";
    for (user, place, arguments, why) in [
        ("known", "", wrong, "Access denied for user 'known'"),
        ("known", "", "", "--password-from"),
        ("known", "nowhere", known, "/DATABASE, or none"),
        ("nobody", "", "", "Access denied for user 'nobody'"),
        ("tls", "", known, "if the server wants TLS"),
        ("modern", "", known, "method client_ed25519"),
        (
            "open",
            "?nonsense=1",
            "",
            "Unknown system variable 'nonsense'",
        ),
        (
            "open",
            "",
            "--sessions 70",
            "Too many connections; fewer --sessions",
        ),
    ] {
        let arguments = format!("--workload read --transactions 100 {arguments}");
        let ended = load(&server.address(user, place), &arguments);
        let said = ended.stderr();
        assert_eq!(ended.output.status.code(), Some(1), "{said}");
        assert!(said.contains(why), "{why}: {said}");
        let at = format!("127.0.0.1:{}", server.port);
        assert!(said.contains(&at), "{said}");
    }
}

#[test]
fn a_crash_leaves_the_figures_until_then_and_loses_nothing() {
    let Some(mut server) = server() else { return };
    let address = server.address("open", "");
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let workload = format!("--workload tpcb-strict --ledger {}", ledger.display());
    let arguments = format!("{workload} --init --sessions 6 --duration 1h");
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let running = start(&address, &arguments);
    let deadline = Instant::now() + Duration::from_secs(180);
    let count = "SELECT SUM(variable_value) FROM information_schema.global_status
         WHERE variable_name = 'Com_stmt_execute'";
    while server.ask(count).parse::<f64>().unwrap() < 500.0 {
        assert!(Instant::now() < deadline, "nothing is asked");
    }
    server.kill();
    let output = running.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no session is left"), "{said}");
    let figures = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(figures.contains("answered"), "{figures}");

    server.start_again();
    let verified = load(&address, &format!("{workload} --verify-only")).ok();
    assert!(
        verified.stdout().contains("checks hold"),
        "{}",
        verified.stdout()
    );
}

#[test]
fn user_defined_statements_are_executed() {
    let Some(server) = server() else { return };
    server.ask(
        "CREATE DATABASE t; USE t; GRANT ALL ON t.* TO open@'%'; SET GLOBAL max_allowed_packet = 1 << 28;
         CREATE TABLE a (id INT PRIMARY KEY, b BIGINT NOT NULL); INSERT INTO a VALUES (0, 0), (1, 0)",
    );
    let address = server.address("open", "t");
    let own = |commands: &[&str], arguments: &str| {
        let mut all: Vec<&str> = commands.iter().flat_map(|it| ["--command", it]).collect();
        all.extend(arguments.split_whitespace());
        load_with(&address, &all, &[])
    };
    // Two sessions that take two rows crosswise: deadlocks leave nothing behind.
    let forth = "UPDATE a SET b = b + 1 WHERE id = {session} % 2";
    let back = "UPDATE a SET b = b + 1 WHERE id = 1 - {session} % 2";
    let crosswise = ["BEGIN", forth, back, "COMMIT"];
    let ended = own(&crosswise, "--sessions 8 --transactions 2000").ok();
    let done = ended.indicator("operations") as i64;
    assert!(
        ended.stdout().contains("× 1213 deadlock"),
        "{}",
        ended.stdout()
    );
    assert_eq!(server.ask("SELECT SUM(b) FROM t.a"), (2 * done).to_string());

    // Longer than a packet can be, both ways.
    for (command, arguments) in [
        ("SELECT LENGTH({value}) AS n", "--value-bytes 9000000"),
        ("SELECT REPEAT('x', 16777215 * 2) AS x", ""),
    ] {
        let arguments = format!("--sessions 1 --transactions 2 {arguments}");
        let ended = own(&[command], &arguments).ok();
        assert_eq!(ended.indicator("operations"), 2.0, "{}", ended.stdout());
    }

    let missing = own(&["SELECT c FROM a"], "--transactions 1");
    assert!(
        missing
            .stderr()
            .contains("\"SELECT c FROM a\": 1054 Unknown column")
    );
}

#[test]
fn data_of_other_programs_are_left_alone() {
    let Some(server) = server() else { return };
    let address = server.address("root", "");
    let refused = |arguments: &str, why: &str| {
        let ended = load(
            &address,
            &format!("--workload read --transactions 1 {arguments}"),
        );
        let said = ended.stderr();
        assert_eq!(ended.output.status.code(), Some(2), "{said}");
        assert!(said.contains(why), "{said}");
    };
    refused("", "no data yet (database concurve): --init makes it");
    load(&address, "--workload read --init-only").ok();
    refused("--scale 2", "--init-only, which replaces it");
    server.ask("UPDATE concurve.marks SET number = 99 WHERE name = 'format'");
    refused("", "made by another version (format 99)");
    server.ask("DROP DATABASE concurve; CREATE DATABASE concurve; CREATE TABLE concurve.a (b INT)");
    refused("--init", "was not made by concurve-load");
    assert_eq!(server.ask("SELECT COUNT(*) FROM concurve.a"), "0");
}
