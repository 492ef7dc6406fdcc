//! The record engine: files of fixed-length records with keys, sessions and transactions, as
//! Btrieve has them, in one process or in several that were forked over one heap.
//!
//! It is a subject of studies, with its concurrency architecture as options: [`Latching`] and
//! [`Durability`]. The results of operations are the same with all of them.
//!
//! The layers from top to bottom: [`session`] has the operations of clients, [`locks`] isolate
//! them,
//! [`tree`] and [`slots`] are the contents of pages, [`store`] changes pages and logs the change,
//! [`cache`] and [`log`] hold pages and changes, [`storage`] is the disk. [`recovery`] and
//! [`checkpointer`] connect the log with the pages. `docs/decisions/0013-record-engine.md` gives the
//! reasons.
//!
//! ```
//! use concurve_records::{
//!     Engine, FileDefinition, Get, Key, LockBias, SegmentKind, EngineOptions, TransactionKind,
//! };
//!
//! # let folder = tempfile::tempdir()?;
//! let (engine, _) = Engine::open(folder.path(), EngineOptions::default())?;
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
//! // Lock at the read: two sessions that read and then update would wait for each other.
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
//! Processes can share an engine: one opens it in shared memory (`concurve-engines`) with
//! [`Engine::open_shared`], then forks the others. One of them calls [`Engine::start_checkpointer`],
//! and the successor of one that died calls [`Engine::end_sessions_of`].

#![forbid(unsafe_code)]

mod admission;
pub mod cache;
mod changes;
mod checkpoint;
mod checkpointer;
mod classes;
pub mod command;
mod control;
mod counted;
pub mod definition;
pub mod engine;
pub mod error;
mod extents;
mod file;
mod free_space;
mod held;
mod locks;
pub mod log;
mod node;
pub mod options;
pub mod page;
mod parameters;
mod purge;
mod recovery;
mod registry;
mod room;
pub mod salvage;
pub mod session;
mod shared;
mod slots;
pub mod statistics;
pub mod status;
pub mod storage;
mod store;
mod table;
mod tree;
mod verify;

pub use checkpointer::Checkpointer;
pub use control::CONTROL_FILE;
pub use counted::shared_writes;
pub use definition::{FileDefinition, Key, Segment, SegmentKind};
pub use engine::Engine;
pub use error::Fault;
pub use log::Durability;
pub use options::{EngineOptions, Latching};
pub use recovery::Recovered;
pub use room::limit_memory;
pub use session::{FileHandle, Get, LockBias, Session, TransactionKind, Waiting};
pub use statistics::Statistics;
pub use status::Status;
