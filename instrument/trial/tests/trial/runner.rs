//! The runner as a command.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::common::{self, Trial, python, role};

#[test]
fn invalid_specs_are_exit_code_2() {
    for (text, expected) in [
        ("", "EOF"),
        ("{\"format\":1,\"trial\":\"t\",\"rolls\":[]}", "rolls"),
        ("{\"format\":1,\"trial\":\"t\",\"roles\":[]}", "roles"),
    ] {
        let output = common::run(&[], text);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn closed_standard_input_is_an_invalid_spec() {
    let script = format!("'{}' <&-", common::RUNNER);
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn check_runs_no_program_and_reports_problems() {
    let folder = tempfile::tempdir().unwrap();
    let touched = folder.path().join("touched");
    let mut refused = role("refused", ["true"]);
    refused["controls"] = json!({"cpus": [4000]});
    let trial = Trial::of([
        role("good", ["touch", touched.to_str().unwrap()]),
        role("missing", ["no-such-program"]),
        role("plain", ["/etc/passwd"]),
        refused,
    ]);
    let output = common::run(&["check"], &trial.0.to_string());
    assert!(output.status.success());
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let kinds: Vec<_> = report["roles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|role| role["problem"]["kind"].clone())
        .collect();
    assert_eq!(
        kinds,
        [
            json!(null),
            json!("not_found"),
            json!("not_executable"),
            json!("control_refused")
        ]
    );
    assert!(report["roles"][0]["controls"]["cpus"].is_array());
    assert!(!touched.exists());
}

#[test]
fn probes_report_why_a_source_is_refused() {
    let output = common::run(&["probes"], "");
    let probes: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for (name, probe) in probes.as_object().unwrap() {
        let granted = probe["granted"].as_bool().unwrap();
        assert_eq!(granted, probe["reason"].is_null(), "{name}");
    }
    assert_eq!(probes["schedstat"]["granted"], true);
}

#[test]
fn edges_of_phases_are_told_while_the_trial_runs() {
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    std::fs::write(&told, "").unwrap();
    let code = r#"
import json, os
def mark(edge, **more):
    line = {"phase": "measure", "edge": edge, **more}
    os.write(int(os.environ["CONCURVE_REPORT"]), json.dumps(line).encode() + b"\n")
mark("begin", at_ns=5)
mark("end")
"#;
    let spec = Trial::from(role("target", [python(), "-c", code]))
        .0
        .to_string();
    // The shell opens the descriptor that the runner is told of.
    let line = format!(
        "exec 7>{}; exec {} --events 7",
        told.display(),
        common::RUNNER
    );
    let mut child = Command::new("sh")
        .args(["-c", &line])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(spec.as_bytes())
        .unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    let lines = std::fs::read_to_string(&told).unwrap();
    let lines: Vec<Value> = lines
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(
        lines[0],
        json!({"role": "target", "phase": "measure", "edge": "begin", "at_ns": 5})
    );
    assert!(
        lines[1]["at_ns"].as_u64().unwrap() > 5,
        "the time of receipt"
    );
    let refused = common::run(&["--events", "999"], &spec);
    assert_eq!(refused.status.code(), Some(2));
}
