//! Runs tests that fork. A process with several threads must not fork, so each test runs in a process
//! of its own, in its main thread, and one after the other.
//!
//! The tests of several crates include this file by its path.

use std::process::{Command, ExitCode};

/// The name of a test, and the test itself, which panics if it fails.
pub type Test = (&'static str, fn());

/// A list of tests, from the paths of their functions.
macro_rules! tests {
    ($($test:path),* $(,)?) => { [$((stringify!($test), $test as fn())),*] };
}

/// The `main` of a program of tests: runs those whose names contain the first argument that is no
/// option, or all. `--exact NAME` runs one in this process.
pub fn run(tests: &[Test]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [option, name] = &arguments[..]
        && option == "--exact"
    {
        let found = tests.iter().find(|it| it.0 == name);
        let (_, test) = found.unwrap_or_else(|| panic!("there is no test {name:?}"));
        test();
        return ExitCode::SUCCESS;
    }
    let wanted = arguments.iter().find(|it| !it.starts_with('-'));
    let is_wanted = |name: &str| wanted.is_none_or(|it| name.contains(it.as_str()));
    let failed: Vec<&str> = tests
        .iter()
        .map(|it| it.0)
        .filter(|name| is_wanted(name) && !passes(name))
        .collect();
    match failed[..] {
        [] => ExitCode::SUCCESS,
        _ => {
            eprintln!("these tests failed: {}", failed.join(", "));
            ExitCode::FAILURE
        }
    }
}

/// Runs a test in a process of its own, and tells how it ended.
fn passes(name: &str) -> bool {
    let this = std::env::current_exe().expect("the program of the tests");
    let ended = Command::new(this).args(["--exact", name]).status();
    let ended = ended.expect("the program of the tests starts again");
    match ended.success() {
        true => println!("test {name} ... ok"),
        false => println!("test {name} ... FAILED: {ended}"),
    }
    ended.success()
}
