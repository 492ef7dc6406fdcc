//! The output of programs, on the report channel and elsewhere, and their refusals.

use std::io::Read;
use std::process::Stdio;
use std::time::Duration;
use std::{fs, thread};

use concurve_reporter::line::ReportLine;

use crate::program::target;

#[test]
fn garbage_is_garbage_and_a_valid_line_follows_it() {
    for kind in ["text", "binary", "huge-line", "unknown-keys"] {
        let ended = target(&format!("garbage --kind {kind} --amount 5000"))
            .run()
            .ok();
        let mut lines: Vec<_> = ended.report.split(|byte| *byte == b'\n').collect();
        assert_eq!(lines.pop(), Some(&b""[..]), "{kind} ends its last line");
        let last = lines.pop().unwrap();
        assert!(serde_json::from_slice::<ReportLine>(last).is_ok(), "{kind}");
        for line in lines {
            let parsed = serde_json::from_slice::<ReportLine>(line);
            assert!(parsed.is_err(), "{kind}: {}", String::from_utf8_lossy(line));
        }
    }
    let ended = target("garbage --kind partial").run().ok();
    assert!(!ended.report.is_empty() && !ended.report.ends_with(b"\n"));
    let ended = target("garbage --kind flood --amount 5000").run().ok();
    assert_eq!(ended.lines().len(), 5001);
}

#[test]
fn garbage_needs_a_channel() {
    let mut program = target("garbage --kind text");
    program.command.env_remove("CONCURVE_REPORT");
    let ended = program.run();
    assert_eq!(ended.status.code(), Some(2));
    assert!(ended.stderr.contains("CONCURVE_REPORT"), "{}", ended.stderr);
}

#[test]
fn output_has_exactly_the_size_asked_for() {
    let ended = target("output --bytes 100001 --stream both").run().ok();
    assert_eq!((ended.stdout.len(), ended.stderr.len()), (100_001, 100_001));
    let ended = target("output --lines 1000 --line-bytes 50").run().ok();
    assert_eq!(ended.stdout.len(), 50_000);
    let last = ended.stdout.lines().last().unwrap();
    assert!(last.starts_with("line 1000 .."), "{last}");
}

#[test]
fn bad_values_are_refused_with_the_name_of_the_flag() {
    for (arguments, named) in [
        ("busy --threads 0 --cpu-ms 1", "--threads"),
        ("busy --threads 1", "--total-iterations"),
        ("busy --cpu-ms 1 --iterations 5", "--cpu-ms"),
        ("sleep --threads two --ms 1", "--threads"),
        ("mutex --operations 10 --hold-percent 101", "--hold-percent"),
        ("mutex --operations 10 --operation-us nan", "--operation-us"),
        ("mutex --operations 0", "--operations"),
        ("many-locks --operations 0", "--operations"),
        ("shared-counter --operations -5", "-5"),
        ("fsync --operations 5", "--directory"),
        ("fork --children 0", "--children"),
        ("thread-storm --threads 0", "--threads"),
        ("thread-storm --threads max --churn 3", "--churn"),
        ("crash --signal STOP", "--signal"),
        ("crash --exit-code 256", "--exit-code"),
        ("crash", "--signal"),
        ("garbage --kind nice", "--kind"),
        ("output --lines 1 --line-bytes 3", "--line-bytes"),
        ("memory --bytes 5MB", "--bytes"),
        ("switch --operations 0", "--operations"),
        ("noisy --mean-ms 0", "--mean-ms"),
        ("noisy --mean-ms 1 --cv=-1", "--cv"),
        ("serve --ready-ms soon", "--ready-ms"),
        ("juggle", "juggle"),
    ] {
        let ended = target(arguments).run();
        assert_eq!(
            ended.status.code(),
            Some(2),
            "{arguments}: {}",
            ended.stderr
        );
        assert!(
            ended.stderr.contains(named),
            "{arguments}: {}",
            ended.stderr
        );
        assert!(ended.report.is_empty(), "{arguments}");
    }
}

#[test]
fn a_channel_that_cannot_be_opened_is_an_error() {
    for channel in ["99", "stdout"] {
        let mut program = target("sleep --ms 1");
        program.command.env("CONCURVE_REPORT", channel);
        let ended = program.run();
        assert_eq!(ended.status.code(), Some(1));
        assert!(ended.stderr.contains("CONCURVE_REPORT"), "{}", ended.stderr);
    }
}

#[test]
fn without_a_channel_nothing_is_reported() {
    let mut program = target("sleep --ms 1");
    program.command.env_remove("CONCURVE_REPORT");
    let ended = program.run().ok();
    assert!(ended.report.is_empty());
    assert!(ended.stdout.contains("compute_seconds"));
}

#[test]
fn a_flood_waits_for_a_slow_reader() {
    let (reader, writer) = nix::unistd::pipe().unwrap();
    let mut program = target("garbage --kind flood --amount 20000");
    program.command.stdin(Stdio::from(writer));
    let mut child = program.command.spawn().unwrap();
    drop(program);
    thread::sleep(Duration::from_millis(20));
    let mut text = String::new();
    fs::File::from(reader).read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(text.lines().count(), 20_001);
}
