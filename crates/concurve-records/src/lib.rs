//! The record engine: files of fixed-length records with keys, sessions and transactions, as Btrieve
//! has them, in one process.
//!
//! It is a study's object, with the concurrency architecture as dials: [`Latching`] and
//! [`Durability`]. What operations do is the same at every setting.
//!
//! From above to below: [`session`] is what clients ask, [`locks`] keep them apart, [`tree`] and
//! [`slots`] are the pages' contents, [`store`] changes pages and logs the change, [`cache`] and
//! [`log`] keep both, [`storage`] is the disk. [`recovery`] and [`checkpoint`] tie the log to the
//! pages. `docs/decisions/0012-record-engine.md` says why.

#![forbid(unsafe_code)]

mod apart;
pub mod cache;
mod changes;
mod checkpoint;
mod control;
pub mod definition;
pub mod engine;
pub mod error;
mod file;
mod locks;
pub mod log;
mod node;
pub mod page;
mod recovery;
mod registry;
mod room;
pub mod session;
mod settle;
mod slots;
pub mod status;
pub mod storage;
mod store;
mod tree;
mod verify;

pub use definition::{FileDefinition, Key, Segment, SegmentKind};
pub use engine::{Engine, Latching, Recovered, Settings};
pub use error::Fault;
pub use log::Durability;
pub use session::{FileHandle, Get, LockBias, Session, TransactionKind};
pub use status::Status;
