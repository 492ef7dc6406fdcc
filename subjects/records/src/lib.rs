//! The record engine: files of fixed-length records with keys, sessions and transactions, as Btrieve
//! has them, in one process or in several that were forked over one heap.
//!
//! It is a study's object, with the concurrency architecture as dials: [`Latching`] and
//! [`Durability`]. What operations do is the same at every setting.
//!
//! From above to below: [`session`] is what clients ask, [`locks`] keep them apart, [`tree`] and
//! [`slots`] are the pages' contents, [`store`] changes pages and logs the change, [`cache`] and
//! [`log`] keep both, [`storage`] is the disk. [`recovery`] and [`checkpoint`] tie the log to the
//! pages. `docs/decisions/0013-record-engine.md` says why.
//!
//! ```
//! use concurve_records::{
//!     Engine, FileDefinition, Get, Key, LockBias, SegmentKind, Settings, TransactionKind,
//! };
//!
//! # let folder = tempfile::tempdir()?;
//! let (engine, _) = Engine::open(folder.path(), Settings::default())?;
//! let accounts = FileDefinition {
//!     record_bytes: 100,
//!     keys: vec![Key::unique(0, 4, SegmentKind::Unsigned)],
//! };
//! engine.create_file("accounts", &accounts)?;
//!
//! let mut session = engine.session();
//! let file = session.open("accounts")?;
//! session.insert(file, &[1; 100])?;
//! session.begin(TransactionKind::Concurrent)?;
//! // With a lock from the first on: two that read and then update would wait for each other.
//! let bias = LockBias::MultipleWait;
//! let mut record = session.get(file, Get::Equal(0, &[1; 4]), bias)?.to_vec();
//! record[4] += 1;
//! session.update(file, &record)?;
//! session.end()?;
//! drop(session);
//! engine.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Processes share an engine that one of them opened before the others were forked, in memory that
//! they share (`concurve-engines`): [`Engine::open_shared`], then [`Engine::start_checkpointer`] in one
//! of them, and [`Engine::end_sessions_of`] in the successor of one that died.

#![forbid(unsafe_code)]

mod apart;
pub mod cache;
mod changes;
mod checkpoint;
mod classes;
pub mod command;
mod control;
pub mod definition;
pub mod engine;
pub mod error;
mod file;
mod gate;
mod locks;
pub mod log;
mod node;
pub mod page;
mod recovery;
mod registry;
mod room;
pub mod session;
pub mod settings;
mod settle;
mod shared;
mod slots;
pub mod statistics;
pub mod status;
pub mod storage;
mod store;
mod table;
mod tree;
mod verify;

pub use checkpoint::Checkpointer;
pub use control::NAME as MADE;
pub use definition::{FileDefinition, Key, Segment, SegmentKind};
pub use engine::{Engine, Recovered};
pub use error::Fault;
pub use log::Durability;
pub use session::{FileHandle, Get, LockBias, Session, TransactionKind, Waiting};
pub use settings::{Latching, Settings};
pub use statistics::Statistics;
pub use status::Status;
