//! Sets `has_avx512` where the compiler can enable AVX-512 in a function (Rust 1.89).

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if compiler_minor().is_some_and(|minor| minor >= 89) {
        println!("cargo::rustc-cfg=has_avx512");
    }
}

/// The 95 of `rustc 1.95.0 (…)`.
fn compiler_minor() -> Option<u32> {
    let rustc = std::env::var_os("RUSTC")?;
    let output = Command::new(rustc).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split('.').nth(1)?.parse().ok()
}
