//! Locks: on records, on gaps between key values, on values of unique keys, on files.
//!
//! A lock has holders and a queue. Owners are served in the order of the queue; an owner that
//! already holds the lock in a lesser mode goes first. A transaction keeps its locks until it ends
//! (two-phase locking), so a deadlock never resolves itself: [`deadlock`] detects it.

mod deadlock;
mod lock;
mod name;
mod stripe;
mod table;
mod wait_cell;
mod waiting;
mod word;

pub use lock::{LockOutcome, Mode};
pub use name::{FILE_PARTS, LockName};
pub use table::{Gap, LockTable, Stripes};
pub use wait_cell::{WaitCell, Waker};
pub use waiting::{CHECK_INTERVAL, Queued, next_interval};
