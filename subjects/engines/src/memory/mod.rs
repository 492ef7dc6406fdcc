//! One heap for all engines, in memory that they share.
//!
//! [`open`] reserves address space for all later allocations, if [`SharedAllocator`] is the program's
//! global allocator. Before, and in programs that never call `open`, the system's allocator is
//! used. Processes forked afterwards have the same memory at the same addresses, so collections,
//! `Arc`s and latches of `concurve-latch` work between them as between threads. Not shared are
//! statics and thread-locals, of which each process has a copy, and descriptors opened after the
//! fork.
//!
//! Allocations are *blocks* of 40 sizes up to 32 KiB, and above runs of *units* of 64 KiB. Each
//! thread has a *thread cache*, lists of free blocks of its own, which needs no latch. An empty
//! list is refilled from the *pool* of its size, and a long one returns blocks to the pool,
//! whichever thread allocated them: one latch for each size, taken once for many blocks. A pool
//! divides units into blocks; such a unit is a *slab*. It frees a slab when all its blocks are
//! free.

mod allocator;
mod arena;
mod machine;
mod pool;
mod shared;
mod sizes;
mod thread_cache;
mod units;

pub use allocator::SharedAllocator;
pub use machine::machine_bytes;
pub(crate) use shared::reserving;
pub use shared::{
    Usage, allocate_shared, contains, exhaustion, is_exhausted, is_open, left, open, usage,
};
