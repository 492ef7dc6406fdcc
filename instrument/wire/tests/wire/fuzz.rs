//! Specs and records with any contents: they are read or refused, and what is read can be written and read
//! again.

use std::path::PathBuf;

use concurve_fuzz::Target;
use concurve_wire::record::TrialRecord;
use concurve_wire::spec::TrialSpec;
use serde::Serialize;
use serde::de::DeserializeOwned;

const WORDS: [&[u8]; 12] = [
    b"{",
    b"}",
    b"[[[[[[[[",
    b"\"",
    b",",
    b"null",
    b"-1",
    b"1e400",
    b"true",
    b"\"format\":2,",
    b"\\ud800",
    b":",
];
const BYTES_MAX: usize = 64 << 10;
/// Twenty times the longest input: a small value in JSON becomes a struct.
const MEMORY_MAX: u64 = 20 * BYTES_MAX as u64;

fn golden(prefix: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schema/golden");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|it| {
            it.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with(prefix)
        })
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no golden files {prefix}*");
    paths.iter().map(|it| std::fs::read(it).unwrap()).collect()
}

fn read<T: DeserializeOwned + Serialize>(input: &[u8]) {
    let Ok(value) = serde_json::from_slice::<T>(input) else {
        return;
    };
    let written = serde_json::to_vec(&value).unwrap();
    assert!(serde_json::from_slice::<T>(&written).is_ok());
}

#[test]
fn records_of_any_contents() {
    Target::new(
        env!("CARGO_PKG_NAME"),
        "records_of_any",
        &golden("trial-record-1-"),
    )
    .words(&WORDS)
    .bytes_max(BYTES_MAX)
    .memory_max(MEMORY_MAX)
    .cases(1500)
    .run(|input, _| read::<TrialRecord>(input));
}

#[test]
fn specs_of_any_contents() {
    Target::new(
        env!("CARGO_PKG_NAME"),
        "specs_of_any",
        &golden("trial-spec-1-"),
    )
    .words(&WORDS)
    .bytes_max(BYTES_MAX)
    .memory_max(MEMORY_MAX)
    .cases(1500)
    .run(|input, _| read::<TrialSpec>(input));
}
