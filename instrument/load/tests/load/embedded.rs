//! Engines in the client's own process: the same workloads, tasks and figures as with servers.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{Ended, PROGRAM, load};

const SQLITE: &str = "sqlite:FOLDER/data.db?synchronous=off";
const LMDB: &str = "lmdb:FOLDER/data?sync=off";
const RECORDS: &str = "records:FOLDER/data?durability=none";
const ENGINES: [&str; 6] = [
    SQLITE,
    "sqlite:FOLDER/data.db?journal=delete&synchronous=off",
    LMDB,
    "lmdb:FOLDER/data?sync=off&map=write",
    RECORDS,
    "records:FOLDER/data?durability=none&checkpoints=foreground&checkpoint_mib=1",
];
/// Small data, with more branches than sessions.
const SMALL: &str = "--scale 4 --accounts 20";

fn run(engine: &str, folder: &TempDir, arguments: &str) -> Ended {
    let address = engine.replace("FOLDER", folder.path().to_str().unwrap());
    load(&address, &format!("{SMALL} {arguments}"))
}

/// A folder with the data of a workload.
fn made(engine: &str, workload: &str, files: u32) -> TempDir {
    let folder = TempDir::new().unwrap();
    let arguments = format!("--workload {workload} --files {files} --init-only");
    run(engine, &folder, &arguments).ok();
    folder
}

#[test]
fn a_number_is_done_exactly_and_the_invariants_hold() {
    for engine in ENGINES {
        let folder = made(engine, "tpcb-strict", 2);
        let arguments = "--workload tpcb-strict --files 2 --sessions 4 --transactions 200 --verify";
        let ended = run(engine, &folder, arguments).ok();
        assert_eq!(ended.indicator("operations"), 200.0, "{engine}");
        assert_eq!(ended.indicator("acknowledged"), 200.0);
        assert_eq!(ended.indicator("errors") + ended.indicator("in_doubt"), 0.0);
        let of_sessions = ended.lines.iter();
        let of_sessions = of_sessions.filter(|it| it["indicator"] == "session_operations");
        let of_sessions = of_sessions.map(|it| it["value"].as_f64().unwrap());
        assert_eq!(Vec::from_iter(of_sessions), [50.0; 4]);
        assert_eq!(ended.edges(), ["measure begin", "measure end"]);
        assert!(ended.indicator("latency_ns_p50") > 0.0);
    }
}

#[test]
fn the_data_of_a_share_of_the_greatest_rate_hold() {
    for engine in [SQLITE, RECORDS] {
        let folder = made(engine, "tpcb-strict", 2);
        let load = "--workload tpcb-strict --files 2 --sessions 2 --verify";
        let arguments = format!("{load} --rate 50% --transactions 100 --duration 2s");
        let ended = run(engine, &folder, &arguments).ok();
        assert!(ended.stdout().contains("checks hold"), "{engine}");
        // Those of the closed loop are in the data as well.
        let [done, acknowledged] = ["operations", "acknowledged"].map(|it| ended.indicator(it));
        assert!(
            done <= 100.0 && acknowledged > 100.0,
            "{done} {acknowledged}"
        );
    }
}

#[test]
fn every_workload_runs_on_every_engine() {
    for engine in ENGINES {
        for workload in ["tpcb-rw3", "read", "update"] {
            let folder = made(engine, workload, 1);
            let arguments =
                format!("--workload {workload} --sessions 2 --transactions 40 --verify");
            let ended = run(engine, &folder, &arguments).ok();
            assert_eq!(ended.indicator("operations"), 40.0, "{engine} {workload}");
        }
    }
}

#[test]
fn sessions_that_all_write_all_make_progress() {
    for engine in ENGINES {
        let folder = made(engine, "tpcb-rw3", 1);
        // Many sessions at few branches.
        let arguments = "--workload tpcb-rw3 --sessions 24 --transactions 120 --verify";
        let ended = run(engine, &folder, arguments).ok();
        assert_eq!(ended.indicator("operations"), 120.0, "{engine}");
        assert_eq!(ended.indicator("errors"), 0.0, "{engine}");
    }
}

#[test]
fn warm_ups_and_schedules_are_as_with_servers() {
    for engine in [SQLITE, LMDB, RECORDS] {
        let folder = made(engine, "update", 1);
        let arguments = "--workload update --sessions 3 --warm-up 50ms --transactions 60 --verify";
        let ended = run(engine, &folder, arguments).ok();
        assert_eq!(ended.indicator("operations"), 60.0, "{engine}");
        assert!(ended.indicator("acknowledged") > 60.0);
        let edges = [
            "warm-up begin",
            "warm-up end",
            "measure begin",
            "measure end",
        ];
        assert_eq!(ended.edges(), edges);
        let others = ended.indicator("acknowledged") - 60.0;
        let parts = format!(
            "found:\n             60 answered in the measured time and {others} before or after it\n"
        );
        let said = ended.stdout().replace(',', "");
        assert!(said.contains(&parts), "{parts}: {said}");

        let arguments = "--workload update --sessions 3 --transactions 60 --verify";
        let said = run(engine, &folder, arguments).ok().stdout();
        assert!(said.contains(" 60 transactions are found\n"), "{said}");

        let arguments = "--workload update --sessions 3 --rate 2000 --transactions 60";
        let ended = run(engine, &folder, arguments).ok();
        assert_eq!(ended.indicator("operations"), 60.0, "{engine}");

        // One session is not as fast as that: what would wait behind too many is skipped.
        let arguments = "--workload update --sessions 1 --rate 1e6 --duration 200ms --backlog 5";
        let ended = run(engine, &folder, arguments).ok();
        assert!(ended.indicator("skipped") > 0.0, "{engine}");
        assert!(ended.stdout().contains("late"));

        // Of a number, what is skipped is done.
        let arguments = "--workload update --sessions 1 --rate 1e6 --transactions 50 --backlog 0";
        let ended = run(engine, &folder, arguments).ok();
        let done = ended.indicator("operations") + ended.indicator("skipped");
        assert_eq!((done, ended.indicator("due")), (50.0, 50.0), "{engine}");
    }
}

#[test]
fn sessions_of_sqlite_and_lmdb_may_be_processes() {
    for engine in [SQLITE, LMDB] {
        let folder = made(engine, "tpcb-rw3", 1);
        let arguments = "--workload tpcb-rw3 --sessions 3 --processes --transactions 60 --verify";
        let ended = run(engine, &folder, arguments).ok();
        assert_eq!(ended.indicator("operations"), 60.0, "{engine}");
    }
    let folder = made(RECORDS, "tpcb-rw3", 1);
    let refused = run(RECORDS, &folder, "--processes --sessions 3");
    assert_eq!(refused.output.status.code(), Some(2));
    let said = refused.stderr();
    assert!(
        said.contains("the record engine lives in one process"),
        "{said}"
    );
}

#[test]
fn the_end_of_measuring_is_reported_while_a_transaction_is_under_way() {
    let folder = made(SQLITE, "update", 1);
    // While this transaction is open, no other session can write.
    let other = rusqlite::Connection::open(folder.path().join("data.db")).unwrap();
    other.execute_batch("begin immediate").unwrap();
    let mut child = Command::new(PROGRAM)
        .arg(SQLITE.replace("FOLDER", folder.path().to_str().unwrap()))
        .args(SMALL.split(' '))
        // Long enough for the session to come to its transaction, however busy the machine is.
        .args("--workload update --sessions 1 --duration 3s".split(' '))
        .env("CONCURVE_REPORT", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stdout.take().unwrap());
    let mut said = said.lines().map(Result::unwrap);
    let ended = said.find(|it| it.contains("\"measure\"") && it.contains("\"end\""));
    assert!(
        ended.is_some(),
        "it ended without reporting the end of the phase"
    );
    assert_eq!(
        child.try_wait().unwrap(),
        None,
        "the transaction of the session cannot have ended"
    );
    other.execute_batch("rollback").unwrap();
    let operations = said.find(|it| it.contains("\"operations\"")).unwrap();
    assert!(operations.contains("\"value\":0"), "{operations}");
    assert!(child.wait().unwrap().success());
}

#[test]
fn after_an_interrupt_the_data_agree_with_the_ledger() {
    for engine in [SQLITE, LMDB, RECORDS] {
        let folder = made(engine, "tpcb-rw3", 1);
        let ledger = folder.path().join("ledger");
        let address = engine.replace("FOLDER", folder.path().to_str().unwrap());
        let mut child = Command::new(PROGRAM)
            .arg(&address)
            .args(SMALL.split(' '))
            .args("--workload tpcb-rw3 --sessions 4 --duration 1h --json".split(' '))
            .arg("--ledger")
            .arg(&ledger)
            .env("CONCURVE_REPORT", "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Its report comes on the same pipe, before its figures.
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("\"measure\"") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "it ended early");
        }
        kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
        let rest: Vec<String> = said.lines().map(Result::unwrap).collect();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{engine}");
        let figures = rest.iter().position(|it| it == "{").expect("figures");
        let figures: Value = serde_json::from_str(&rest[figures..].join("\n")).unwrap();
        assert_eq!(figures["errors"], 0, "{figures}");
        let ledger = ledger.display();
        let arguments = format!("--workload tpcb-rw3 --verify-only --ledger {ledger}");
        run(engine, &folder, &arguments).ok();
    }
}

#[test]
fn a_signal_ends_the_making_of_data() {
    for engine in [SQLITE, LMDB, RECORDS] {
        let folder = TempDir::new().unwrap();
        let address = engine.replace("FOLDER", folder.path().to_str().unwrap());
        let mut child = Command::new(PROGRAM)
            .arg(&address)
            .args("--workload read --scale 2000 --init-only".split(' '))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let first = said.next().unwrap().unwrap();
        assert!(first.contains("making the data"), "{first}");
        kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
        let last = said.map_while(Result::ok).last();
        assert_eq!(child.wait().unwrap().code(), Some(143), "{engine}");
        assert!(last.is_some_and(|it| it.contains("stopped")), "{engine}");
    }
}

#[test]
fn json_has_what_was_verified() {
    let folder = made(SQLITE, "update", 1);
    let ledger = folder.path().join("ledger");
    let printed = |arguments: &str, code: i32| -> Value {
        let arguments = format!("--workload update --json {arguments}");
        let ended = run(SQLITE, &folder, &arguments);
        assert_eq!(ended.output.status.code(), Some(code), "{}", ended.stderr());
        serde_json::from_str(&ended.stdout()).unwrap()
    };
    let load = "--sessions 2 --transactions 20";
    let figures = printed(&format!("{load} --ledger {}", ledger.display()), 0);
    assert!(figures["checks_held"].is_null() && figures["transactions_found"].is_null());
    let found = printed(&format!("--verify-only --ledger {}", ledger.display()), 0);
    assert_eq!(found, json!({"checks_held": 3, "transactions_found": 20}));
    let found = printed("--verify-only", 0);
    assert_eq!(found, json!({"checks_held": 3, "transactions_found": null}));
    let figures = printed(&format!("{load} --verify"), 0);
    assert_eq!(
        (&figures["checks_held"], &figures["transactions_found"]),
        (&json!(3), &json!(20))
    );

    let data = rusqlite::Connection::open(folder.path().join("data.db")).unwrap();
    data.execute_batch("delete from concurve_tellers_1 where tid = 1")
        .unwrap();
    let figures = printed(&format!("{load} --verify"), 1);
    assert_eq!(figures["operations"], 20, "the figures stand");
    assert!(figures["checks_held"].is_null(), "{figures}");
}

/// What a run ends with whose standard output is this.
fn printing_to(output: impl Into<Stdio>, address: &str, arguments: &str) -> Output {
    Command::new(PROGRAM)
        .arg(address)
        .args(SMALL.split(' '))
        .args(arguments.split(' '))
        .stdout(output)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap()
}

#[test]
fn figures_that_cannot_be_printed_leave_the_ledger_and_the_verification() {
    let folder = made(SQLITE, "update", 1);
    let address = SQLITE.replace("FOLDER", folder.path().to_str().unwrap());
    let ledger = folder.path().join("ledger");
    let arguments = format!(
        "--workload update --sessions 2 --transactions 20 --ledger {}",
        ledger.display()
    );
    let counted = || {
        let text = fs::read_to_string(&ledger).unwrap();
        fs::remove_file(&ledger).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["counts"]["acknowledged"].clone()
    };
    for json in ["", " --json"] {
        let full = fs::File::create("/dev/full").unwrap();
        let ended = printing_to(full, &address, &format!("{arguments}{json}"));
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(1), "{said}");
        assert!(said.contains("standard output: No space left"), "{said}");
        assert_eq!(counted(), 20);

        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = printing_to(writer, &address, &format!("{arguments}{json}"));
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!((ended.status.code(), &*said), (Some(141), ""));
        assert_eq!(counted(), 20);
    }

    // What is wrong with the data is told all the same, and so is all else.
    let data = rusqlite::Connection::open(folder.path().join("data.db")).unwrap();
    data.execute_batch("delete from concurve_tellers_1 where tid = 1")
        .unwrap();
    let full = fs::File::create("/dev/full").unwrap();
    let more = "--verify --hdr /dev/full --log-requests /dev/full";
    let ended = printing_to(full, &address, &format!("{arguments} {more}"));
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    for failed in [
        "the log of histograms cannot be written",
        "the log of requests cannot be written",
        "the data is not what it must be",
        "standard output: No space left",
    ] {
        assert_eq!(said.matches(failed).count(), 1, "{failed}: {said}");
    }
    assert_eq!(ended.status.code(), Some(1));

    // A reader that has gone hides nothing.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ended = printing_to(writer, &address, &format!("{arguments} --verify"));
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("the data is not what it must be"), "{said}");
}

/// A load on the record engine whose folder goes while it runs, so that it cannot be closed.
fn run_until_the_folder_is_gone(arguments: &str) -> (Output, String) {
    let folder = made(RECORDS, "read", 1);
    let address = RECORDS.replace("FOLDER", folder.path().to_str().unwrap());
    let mut child = Command::new(PROGRAM)
        .arg(&address)
        .args(SMALL.split(' '))
        .args("--workload read --sessions 1 --json".split(' '))
        .args(arguments.split(' '))
        .env("CONCURVE_REPORT", "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"measure\"") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended early");
    }
    let (there, elsewhere) = (folder.path().join("data"), folder.path().join("elsewhere"));
    fs::rename(there, elsewhere).unwrap();
    let printed: Vec<String> = said.lines().map(Result::unwrap).collect();
    let ended = child.wait_with_output().unwrap();
    (ended, printed.join("\n"))
}

#[test]
fn an_engine_that_cannot_be_closed_costs_no_figures() {
    for (arguments, figure) in [
        ("--duration 1s", "\"rate_per_second\": "),
        ("--slo errors=50% --rate 50 --duration 2s", "\"outcome\": "),
        ("--slo errors=50% --duration 2s", "\"outcome\": "),
    ] {
        let (ended, printed) = run_until_the_folder_is_gone(arguments);
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(printed.contains(figure), "{arguments}: {printed} {said}");
        assert_eq!(ended.status.code(), Some(1), "{arguments}: {said}");
        assert!(said.contains("records:"), "{arguments}: {said}");
    }
}

#[test]
fn a_log_that_cannot_be_written_leaves_the_ledger_and_the_verification() {
    let folder = made(SQLITE, "update", 1);
    let ledger = folder.path().join("ledger");
    let arguments = format!(
        "--workload update --sessions 2 --transactions 20 --hdr /dev/full --verify --ledger {}",
        ledger.display()
    );
    let ended = run(SQLITE, &folder, &arguments);
    assert_eq!(ended.output.status.code(), Some(1), "{}", ended.stderr());
    assert!(ended.stderr().contains("/dev/full"), "{}", ended.stderr());
    assert_eq!(ended.indicator("transactions_found"), 20.0);
    let ledger: Value = serde_json::from_str(&fs::read_to_string(ledger).unwrap()).unwrap();
    assert_eq!(ledger["counts"]["acknowledged"], 20);
}

#[test]
fn wrong_usage_is_refused_with_a_remedy() {
    for (engine, arguments, code, why) in [
        (SQLITE, "", 1, "--init makes"),
        (LMDB, "", 1, "there is no environment of LMDB"),
        (RECORDS, "", 1, "--init makes"),
        ("sqlite:", "", 2, "no path"),
        ("sqlite:x?journal=none", "", 2, "is not one of wal, delete"),
        ("lmdb:x?sync=maybe", "", 2, "is not one of full, off"),
        ("lmdb:x?map", "", 2, "\"map\" has no value"),
        (
            "lmdb:x?cache=1",
            "",
            2,
            "\"cache\" is not a setting of this engine",
        ),
        (
            "lmdb:FOLDER/other",
            "",
            1,
            "name a folder with data of this version of LMDB",
        ),
        (SQLITE, "--pipeline 4", 2, "--pipeline"),
        (
            SQLITE,
            "--sessions 5 --threads 2",
            2,
            "each session of sqlite:",
        ),
        (SQLITE, "--workload get", 2, "one of tpcb-rw3"),
        (SQLITE, "--password-from HOME", 2, "asks for none"),
        ("sqlite:Cargo.toml", "", 1, "file is not a database"),
        ("lmdb:/dev/null", "--init", 1, "lmdb:/dev/null"),
    ] {
        let folder = TempDir::new().unwrap();
        let other = folder.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("data.mdb"), [b'x'; 20_000]).unwrap();
        let ended = run(engine, &folder, arguments);
        let said = ended.stderr();
        assert_eq!(
            ended.output.status.code(),
            Some(code),
            "{engine} {arguments}: {said}"
        );
        assert!(said.contains(why), "{engine} {arguments}: {said}");
    }
}
