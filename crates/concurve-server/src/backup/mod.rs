//! The backup file: the update parts of locks that shall outlive the server.
//!
//! An append-only file of records, each with its length and checksum. A record says how often a
//! lock is held from then on, 0 for no longer, so that reading it again changes nothing. A record
//! is on file before its request is answered, and so are all that were made before it.

pub mod file;
pub mod record;

pub use file::{Backup, Durability, Loaded};
