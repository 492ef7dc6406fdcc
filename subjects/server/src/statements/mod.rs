//! The statement service: prepared statements over files of records, with the caches that a database
//! server's kernel has for them.
//!
//! [`Catalogue`] says which files there are and what their fields are called, [`RecordFiles`] executes
//! plans on them, and a [`Client`] is what a connection has prepared. The language, its plans and the
//! caches are `concurve-statements`; the records, their locks and transactions are `concurve-records`.

mod audit;
mod catalogue;
mod files;
mod layout;
mod refusal;
mod state;

pub use audit::{Sums, differing};
pub use catalogue::{Catalogue, View};
pub use files::RecordFiles;
pub use refusal::Refusal;
pub use state::{Client, PREPARED_MAX, StatementService};
