//! Latches between threads and between processes. They record their holders and count their use.
//!
//! [`Mutex`], [`RwLock`] and [`Condvar`] are used as those of `parking_lot`. Put in memory that
//! processes share, at the same address in each, they work there too: their waiters sleep on
//! futexes without the private flag, and no process keeps private data about them.
//!
//! Each latch has a [`Class`], under whose name it is counted. Each thread that takes latches has a
//! *seat* (an entry of its own) in the *board*, a table in memory that is shared with all processes
//! forked later. The seat counts, for each class, how often the thread began to take a latch, how
//! often it released one, and how often it waited, spun and slept. Only its own thread writes a
//! seat, so counting costs two stores to memory that no other CPU uses, and reading ([`counts`])
//! delays no thread. The difference of the first two counts is what a thread holds ([`held`]). A
//! latch is counted before it is taken and until after it is released, so a process that died with
//! a difference of 0 has left nothing locked.
//!
//! A latch whose holder was killed is never free again. The process that detects this calls
//! [`fail`]. Each thread that waits for a latch then ends its process with the status
//! [`EXIT_LATCH_LOST`], after half a second at most ([`check_failure_every`]). A latch whose holder
//! panicked is broken: a thread that wants it panics too.

mod atomic;
mod board;
mod class;
mod condvar;
mod counts;
mod mutex;
mod rwlock;
mod seat;
mod section;
mod thread;
mod version;
mod versioned;
mod waiting;

pub use board::{EXIT_LATCH_LOST, check_failure_every, fail, is_failed, spin_by_default};
pub use class::{Class, Spin};
pub use condvar::Condvar;
pub use counts::{Counts, counts, held};
pub use mutex::{Mutex, MutexGuard, RawMutex};
pub use rwlock::{RawRwLock, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use seat::SEATS;
pub use section::Section;
pub use thread::{
    engine, forks, reap, renew, seat_number, set_engine_of_process, set_engine_of_thread,
};
pub use versioned::{Snapshot, Versioned, VersionedRead, VersionedWrite};
