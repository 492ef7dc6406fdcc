//! The runner by itself, for this crate's tests. What users get is built by `concurve-native`.

use std::process::ExitCode;

fn main() -> ExitCode {
    concurve_trial::main()
}
