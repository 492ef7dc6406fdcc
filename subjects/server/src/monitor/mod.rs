//! The counters of the running server, which are read without delaying its threads.
//!
//! Two meters measure how an engine spends its time, as in document 001: its own clock ([`meter`]),
//! and the kernel's account of its CPU time. [`figures`](crate::figures) reads all counters. INFO shows them, and a
//! client can make the server report the difference of two readings as a [`phase`].

pub mod meter;
pub mod phase;
