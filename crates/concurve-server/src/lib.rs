//! The reference server: one small server whose concurrency architecture is a set of dials.
//!
//! `docs/programs/server.md` is the user's page.

pub mod locks;

use std::process::ExitCode;

/// Entry point of the binary.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
