//! The runner as a command.

use serde_json::json;

use crate::common::{self, Trial, role};

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
