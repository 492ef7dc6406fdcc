//! One heap for all engines, in memory that they share.
//!
//! [`open`] reserves address space and puts everything there that is allocated from then on, if
//! [`SharedAllocator`] is the program's global allocator; before, and in programs that never call it,
//! the system's allocator serves. Processes forked afterwards have the same memory at the same
//! addresses, so collections, `Arc`s and latches of `concurve-latch` work between them as between
//! threads. What is not shared: statics and thread-locals, of which each process has a copy, and
//! descriptors opened after the fork.
//!
//! Memory is handed out in *blocks* of 40 sizes up to 32 KiB, and above in runs of *units* of 64 KiB.
//! Each thread has lists of free blocks of its own, its *lane*, for which nothing is latched. An
//! empty list is filled with some blocks of the *pool* of its size, and a long one gives some back,
//! whoever allocated them: one latch for each size, taken once for many blocks. A pool cuts units,
//! which are *slabs* then, and gives them back when all their blocks are there.

mod allocator;
mod arena;
mod lane;
mod pool;
mod shared;
mod sizes;
mod units;

pub use allocator::SharedAllocator;
pub(crate) use shared::reserving;
pub use shared::{
    Usage, allocate_shared, contains, exhaustion, is_exhausted, is_open, open, usage,
};
