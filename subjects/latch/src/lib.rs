//! Latches that work between threads and between processes, know who holds them, and count.
//!
//! [`Mutex`], [`RwLock`] and [`Condvar`] are used as those of `parking_lot`. Put in memory that
//! processes share, at the same address in each, they hold there too: their waiters sleep on futexes
//! without the private flag, and nothing about them is kept in a process.
//!
//! Each latch has a [`Class`], by whose name it is counted. Each thread that takes latches has a
//! *seat* on a *board*, which is memory shared with all processes that are forked later: how often it
//! began to take latches of each class, how often it was done with them, how often and how long it
//! waited. A seat is written by its own thread alone, so counting costs two stores to memory that no
//! other CPU wants, and reading ([`counts`]) disturbs nobody. The two counts say what a thread holds
//! ([`held`]): it is counted before it is taken and until after it is given back, so a process that
//! died with nothing held has left nothing locked.
//!
//! A latch whose holder was killed is never free again. Whoever finds that out says so by [`fail`];
//! all who wait for a latch then leave their processes with the status [`LEFT`], after
//! half a second at most ([`look_every`]).
//! A latch whose holder panicked is broken: who wants it panics too.

mod board;
mod class;
mod condvar;
mod counts;
mod futex;
mod mutex;
mod rwlock;
mod seat;
mod section;
mod waiting;

pub use board::{LEFT, fail, is_failed, look_every, renew};
pub use class::{Class, Spin, spin_by_default};
pub use condvar::Condvar;
pub use counts::{Counts, counts, held};
pub use mutex::{Mutex, MutexGuard, RawMutex};
pub use rwlock::{RawRwLock, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use seat::{SEATS, be_engine, be_engine_thread, bury, engine, seat_number};
pub use section::Section;
