//! Compiles the library that the program carries: `instrument/interposer`, by the compiler alone.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    let sources = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../interposer/src");
    let library = PathBuf::from(variable("OUT_DIR")).join("libconcurve_interposer.so");
    println!("cargo::rerun-if-changed={}", sources.display());
    let mut compile = Command::new(variable("RUSTC"));
    compile
        .args(["--edition", "2024", "--crate-type", "cdylib"])
        .args(["--crate-name", "concurve_interposer"])
        .args(["--target", &variable("TARGET")])
        .args([
            "-C",
            "opt-level=3",
            "-C",
            "panic=abort",
            "-C",
            "strip=symbols",
        ])
        .arg("-o")
        .arg(&library)
        .arg(sources.join("lib.rs"));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        compile.arg("-C").arg(format!("linker={linker}"));
    }
    let done = compile.status();
    assert!(
        done.as_ref().is_ok_and(|status| status.success()),
        "{compile:?} failed: {done:?}"
    );
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo gives {name}"))
}
