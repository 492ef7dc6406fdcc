//! The seam between Python and Rust: one spec in, one record out, and the lines that a
//! measured program may write on its report channel; [`reporter`] writes them for programs in
//! Rust. Nothing else lives here.
//!
//! The same types stand in `src/concurve/wire/`; the JSON Schemas in `schema/` and the
//! golden files in `schema/golden/` are read by the tests of both languages.
//!
//! History of the format:
//! - 1 (2026-11): first version.

pub mod record;
pub mod report;
pub mod reporter;
pub mod spec;

/// Version of the spec and record formats that this code writes.
pub const FORMAT: u32 = 1;

/// Name of the environment variable that holds the number of a role's report descriptor.
pub const REPORT_VARIABLE: &str = "CONCURVE_REPORT";

/// Name of the environment variable that marks every process of a trial with the trial's id.
pub const TRIAL_VARIABLE: &str = "CONCURVE_TRIAL";

/// Name of the environment variable that marks every process of a role with the role's name.
pub const ROLE_VARIABLE: &str = "CONCURVE_ROLE";
