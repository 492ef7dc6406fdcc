//! The seam between Python and Rust: the types of specs and records, and nothing else. The lines
//! that a measured program may write are in `concurve-reporter`.
//!
//! The same types stand in `src/concurve/wire/`; the JSON Schemas in `schema/` and the
//! golden files in `schema/golden/` are read by the tests of both languages.
//!
//! History of the format:
//! - 1 (2026-11): first version.

pub mod record;
pub mod spec;

/// Version of the spec and record formats that this code writes.
pub const FORMAT: u32 = 1;

/// Name of the environment variable that marks every process of a trial with the trial's id.
pub const TRIAL_VARIABLE: &str = "CONCURVE_TRIAL";

/// It marks every process of a role with the role's name.
pub use concurve_reporter::ROLE_VARIABLE;
