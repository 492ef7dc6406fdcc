//! The program, started from the command line.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_concurve-storage-under-test"))
        .args(arguments)
        .env_remove("CONCURVE_REPORT")
        .output()
        .expect("it starts")
}

fn text(folder: &Path) -> &str {
    folder.to_str().expect("UTF-8")
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn exports_loads_and_writes_the_times_of_each_table() {
    let folder = tempfile::tempdir().unwrap();
    let (exports, database) = (
        folder.path().join("exports"),
        folder.path().join("database"),
    );
    let times = folder.path().join("times.csv");
    let made = run(&["export", text(&exports), "--size", "2M", "--tables", "40"]);
    assert!(made.status.success(), "{}", errors(&made));
    let shown = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(shown.starts_with("34 files, 40 tables, "), "{shown}");
    let loaded = run(&[
        "load",
        "sqlite",
        text(&database),
        "--exports",
        text(&exports),
        "--loaders",
        "3",
        "--times",
        text(&times),
    ]);
    assert!(loaded.status.success(), "{}", errors(&loaded));
    let shown = String::from_utf8_lossy(&loaded.stdout).into_owned();
    for name in ["load_seconds", "savepoint_seconds_max", "rows"] {
        assert!(shown.contains(name), "{shown}");
    }
    let line = |name: &str, value: &str| format!("{name:<26}{value}\n");
    assert!(shown.contains(&line("loaders_are", "processes")), "{shown}");
    let taken = "the export files were taken out of it";
    assert!(shown.contains(&line("page_cache", taken)), "{shown}");
    let lines = std::fs::read_to_string(times).unwrap();
    assert_eq!(lines.lines().count(), 41);
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let exports = folder.path().join("exports");
    let ended = Command::new(env!("CARGO_BIN_EXE_concurve-storage-under-test"))
        .args(["export", text(&exports), "--size", "1.1M"])
        .env_remove("CONCURVE_REPORT")
        .stdout(File::create("/dev/full").unwrap())
        .output()
        .unwrap();
    let said = errors(&ended);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(
        said.contains("cannot write to standard output: No space left"),
        "{said}"
    );
}

#[test]
fn streams_are_counted() {
    // On a disk, where every user may write: /tmp may be in memory, which has no O_DIRECT.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let done = run(&[
        "streams",
        text(folder.path()),
        "--writers",
        "1",
        "--depth",
        "2",
        "--readers",
        "1",
        "--read-rate",
        "200",
        "--file-size",
        "2M",
        "--seconds",
        "0.1",
    ]);
    assert!(done.status.success(), "{}", errors(&done));
    let shown = String::from_utf8_lossy(&done.stdout).into_owned();
    for name in [
        "reads_per_second",
        "writes_per_second",
        "read_ms_p99",
        "seeks",
    ] {
        assert!(shown.contains(name), "{shown}");
    }
}

#[test]
fn nonsense_is_refused_with_a_remedy() {
    for (arguments, remedy) in [
        (
            &["export", "/dev/null/x"] as &[&str],
            "cannot make /dev/null/x",
        ),
        (&["export", "x", "--size", "5"], "give a size such as 50M"),
        (&["export", "x", "--tables", "3"], "34.."),
        (
            &["load", "sqlite", "x", "--exports", "/nowhere"],
            "cannot read the manifest",
        ),
        (
            &["export", "/proc/x", "--size", "73G"],
            "the export set takes 73000 MB at least, and /proc/x has 0 MB left: take a smaller",
        ),
        (
            &[
                "load",
                "records",
                "x",
                "--exports",
                "y",
                "--loaders-are",
                "processes",
            ],
            "records lives in one process",
        ),
        (
            &["load", "oracle", "x", "--exports", "y"],
            "sqlite, records, postgres",
        ),
        (
            &["streams", "x", "--writers", "0", "--readers", "0"],
            "give --writers or --readers",
        ),
        (
            &["streams", "x", "--write-kib", "5"],
            "give a multiple of 4",
        ),
        (
            &["streams", "x", "--read-rate", "0"],
            "give a number from 0.01",
        ),
        (
            &["streams", "x", "--writers", "4000", "--depth", "4000"],
            "4096 requests at most",
        ),
    ] {
        let output = run(arguments);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{arguments:?}");
        assert!(
            errors(&output).contains(remedy),
            "{arguments:?}: {}",
            errors(&output)
        );
    }
}

/// `/proc` has no free space.
#[test]
fn a_load_without_disk_space_is_refused_before_anything_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let exports = text(folder.path());
    assert!(run(&["export", exports, "--size", "1.1M"]).status.success());
    let output = run(&["load", "sqlite", "/proc/database", "--exports", exports]);
    assert_eq!(output.status.code(), Some(1));
    let errors = errors(&output);
    assert!(
        errors.contains("the database takes 2 MB at least, and /proc/database has 0 MB"),
        "{errors}"
    );
}

/// The load continues whether the machine allows it or not, and reports which.
#[test]
fn the_page_cache_may_be_dropped_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (exports, database) = (
        folder.path().join("exports"),
        folder.path().join("database"),
    );
    assert!(
        run(&["export", text(&exports), "--size", "1.1M"])
            .status
            .success()
    );
    let loaded = run(&[
        "load",
        "records",
        text(&database),
        "--exports",
        text(&exports),
        "--drop-caches",
    ]);
    assert!(loaded.status.success(), "{}", errors(&loaded));
    let shown = String::from_utf8_lossy(&loaded.stdout).into_owned();
    assert!(
        shown.contains("dropped as a whole before the load")
            || shown.contains("without the right to drop it as a whole"),
        "{shown}"
    );
    let line = format!("{:<26}threads\n", "loaders_are");
    assert!(shown.contains(&line), "{shown}");
}

#[test]
fn a_missing_database_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let made = run(&["export", text(folder.path()), "--size", "1.1M"]);
    assert!(made.status.success(), "{}", errors(&made));
    let address = "host=127.0.0.1 port=1 user=nobody";
    let output = run(&[
        "load",
        "postgres",
        address,
        "--exports",
        text(folder.path()),
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("cannot connect to host=127.0.0.1 port=1"));
}
