//! The atomics of [`version`](crate::version), which a test replaces by those of a model checker.

pub use std::sync::atomic::{AtomicU64, Ordering, fence};
