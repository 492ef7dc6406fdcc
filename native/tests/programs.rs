//! Every program that the distribution installs starts, and says how it is used.

use std::process::{Command, Stdio};

#[test]
fn every_program_has_a_help_text_that_names_it() {
    for (name, path) in [
        ("concurve-disk", env!("CARGO_BIN_EXE_concurve-disk")),
        ("concurve-load", env!("CARGO_BIN_EXE_concurve-load")),
        (
            "concurve-mandelbrot",
            env!("CARGO_BIN_EXE_concurve-mandelbrot"),
        ),
        ("concurve-perturb", env!("CARGO_BIN_EXE_concurve-perturb")),
        ("concurve-server", env!("CARGO_BIN_EXE_concurve-server")),
        ("concurve-storage", env!("CARGO_BIN_EXE_concurve-storage")),
        ("concurve-targets", env!("CARGO_BIN_EXE_concurve-targets")),
    ] {
        let done = Command::new(path).arg("--help").output().unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        assert!(
            done.status.success() && text.contains(name),
            "{name}: {text}"
        );
    }
}

/// The trial runner has no options: it reads a spec from standard input.
#[test]
fn the_trial_runner_refuses_an_empty_spec() {
    let runner = env!("CARGO_BIN_EXE_concurve-trial");
    let done = Command::new(runner).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(2), "{text}");
    assert!(text.contains("invalid spec"), "{text}");
}
