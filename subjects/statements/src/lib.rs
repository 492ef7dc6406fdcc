//! Prepared statements over files of records: the statement caches of a database server.
//!
//! A *statement* is a text such as `ADD accounts balance ? KEY ?`: one of a few operations,
//! compiled to a [`Plan`]. [`Statements`] finds the plan of a text in its *statement cache*, by the
//! text and the options of the session, or compiles it. A plan occupies pages of the *procedure
//! cache*. Each engine has some of these pages of its own, and all share the rest behind one latch.
//! If too few are free, unused plans are dropped.
//!
//! Shared data are guarded by `concurve-latch`, and hash keys are stored with them, so engines may
//! be threads or processes. Source of the architecture: the statement and procedure caches of
//! Sybase ASE (document 001).

mod cache;
mod error;
mod plan;
mod procedures;
mod service;
mod text;

pub use cache::{Caching, Counters, SessionOptions};
pub use error::StatementError;
pub use plan::{Answer, FileId, Files, Operand, Operation, Plan, Value};
pub use procedures::PAGE_BYTES;
pub use service::{CacheOptions, Statements};
pub use text::{Catalogue, FileColumns};
