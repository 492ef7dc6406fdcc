//! What the server counts while it runs, and how that is read without disturbing it.
//!
//! Two meters say what an engine did with its time, as in document 001: its own clock ([`meter`]),
//! and the kernel's account of its CPU time. A [`snapshot`] is all of it at one moment; INFO shows
//! one, and a client may have what lies between two of them reported as a [`phase`].

pub mod meter;
pub mod phase;
pub mod snapshot;
