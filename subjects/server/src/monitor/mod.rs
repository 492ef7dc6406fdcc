//! What the server counts while it runs, and how that is read without disturbing it.
//!
//! Two meters measure what an engine does with its time, as in document 001: its own clock ([`meter`]),
//! and the kernel's account of its CPU time. [`figures`](crate::figures) reads all counters; INFO shows them, and a
//! client may have the difference of two readings reported as a [`phase`].

pub mod meter;
pub mod phase;
