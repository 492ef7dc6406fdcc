//! The backup file keeps the update parts of locks over a restart of the server.
//!
//! It is an append-only file of records, each with its length and checksum. A record states how
//! often a lock is held from then on (0: no longer), so replaying it twice is harmless. A record
//! and all earlier ones are in the file before its request is answered. The server reads the file
//! at its start, then appends to it, and compacts it when most of its records are outdated.

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
