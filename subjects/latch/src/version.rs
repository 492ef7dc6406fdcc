//! The version of data that is read without a latch.
//!
//! This file is also compiled by `tests/version_model.rs`, with the atomics of a model checker.

use crate::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::atomic::{AtomicU64, fence};

/// A number that changes whenever the data do: even while they can be read, odd while they change
/// or are not valid.
///
/// One thread at a time changes it, which holds the latch of the data. A reader takes the version,
/// reads the data by relaxed atomic loads, and then asks whether the version is still the same; if
/// not, what it has read is worth nothing. Boehm, Can Seqlocks Get Along With Programming Language
/// Memory Models? (MSPC 2012).
#[derive(Debug)]
pub struct Version(AtomicU64);

impl Version {
    /// That of data which are not valid yet.
    pub fn invalid() -> Self {
        Self(AtomicU64::new(1))
    }

    /// The version, if the data can be read now. To be called before they are read.
    #[inline]
    pub fn to_read(&self) -> Option<u64> {
        let now = self.0.load(Acquire);
        (now & 1 == 0).then_some(now)
    }

    /// Whether nothing has changed since [`Version::to_read`].
    #[inline]
    pub fn is_still(&self, seen: u64) -> bool {
        // The loads of the data come before the fence, and the load of the version after it.
        fence(Acquire);
        self.0.load(Relaxed) == seen
    }

    /// Whether the data can be read. Exact for the holder of the latch.
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.0.load(Relaxed) & 1 == 0
    }

    /// To be called by the holder of the latch before it changes the data; again without effect.
    #[inline]
    pub fn begin_change(&self) {
        let now = self.0.load(Relaxed);
        if now & 1 == 0 {
            self.0.store(now + 1, Relaxed);
            // A reader that sees one of the following stores sees the odd version, too.
            fence(Release);
        }
    }

    /// To be called by the holder of the latch: the data can be read.
    #[inline]
    pub fn end_change(&self) {
        let now = self.0.load(Relaxed);
        if now & 1 == 1 {
            self.0.store(now.wrapping_add(1), Release);
        }
    }
}
