//! The golden files of `schema/golden` parse, and come out as they went in.

use std::fs;
use std::path::PathBuf;

use concurve_wire::record::{OutcomeKind, TrialRecord};
use concurve_wire::spec::{End, TrialSpec};
use serde_json::Value;

fn golden(prefix: &str) -> Vec<(PathBuf, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schema/golden");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with(prefix)
        })
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no golden files {prefix}*");
    files
}

#[test]
fn records_come_out_as_they_went_in() {
    let mut kinds = Vec::new();
    for (path, text) in golden("trial-record-1-") {
        let record: TrialRecord = serde_json::from_str(&text).unwrap();
        let expected: Value = serde_json::from_str(&text).unwrap();
        let found = serde_json::to_value(&record).unwrap();
        assert_eq!(found, expected, "{}", path.display());
        kinds.push(record.outcome.kind);
    }
    for kind in [
        OutcomeKind::Ok,
        OutcomeKind::ExecFailed,
        OutcomeKind::ControlRefused,
        OutcomeKind::ProgramFailed,
        OutcomeKind::NotReady,
        OutcomeKind::TimedOut,
        OutcomeKind::Interrupted,
    ] {
        assert!(kinds.contains(&kind), "no golden record of kind {kind:?}");
    }
}

#[test]
fn specs_keep_what_they_say() {
    for (path, text) in golden("trial-spec-1-") {
        let spec: TrialSpec = serde_json::from_str(&text).unwrap();
        let written = serde_json::to_string(&spec).unwrap();
        let again: TrialSpec = serde_json::from_str(&written).unwrap();
        assert_eq!(spec, again, "{}", path.display());
        if path.ends_with("trial-spec-1-full.json") {
            let expected: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_value(&spec).unwrap(), expected);
        }
    }
}

#[test]
fn a_minimal_spec_has_the_documented_defaults() {
    let text = r#"{"format":1,"trial":"t","roles":[{"name":"target","argv":["true"]}]}"#;
    let spec: TrialSpec = serde_json::from_str(text).unwrap();
    assert_eq!(spec.roles[0].end, End::Exit);
    assert_eq!(
        (spec.stop_grace_ns, spec.output_bytes_max),
        (5_000_000_000, 65_536)
    );
    assert_eq!(spec.sampling.interval_ns_min, 10_000_000);
}
