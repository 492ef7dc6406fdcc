//! The backup file keeps the update parts of locks that shall outlive the server.
//!
//! An append-only file of records, each with its length and checksum. A record says how often a
//! lock is held from then on; 0 means no longer. So a record may be read twice. A record is on file
//! before its request is answered, and so are all earlier ones. The file is read at the start, then
//! appended to, and rewritten when most of its records are outdated.

mod error;
mod file;
mod held;
mod log;
mod record;

pub use error::BackupError;
pub use file::{BackupFile, Durability};
pub use held::LoadedBackup;
pub use log::BackupLog;
pub use record::Record;
