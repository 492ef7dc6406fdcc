//! Atomic words that sessions share, and how often a thread writes to them.
//!
//! A write to a cache line that another CPU uses costs both of them several times what it costs
//! alone. So the words that sessions share are these, and not those of the standard library: in
//! builds with debug assertions they count each write. The engine's tests ask for the count; latches are
//! counted by their class (`concurve_latch::counts`).

use std::cell::Cell;
use std::sync::atomic::{self, Ordering};

thread_local! {
    static WRITES: Cell<u64> = const { Cell::new(0) };
}

/// How often this thread has written to a shared word, without those of latches: counted with debug
/// assertions only, and 0 without them.
pub fn shared_writes() -> u64 {
    WRITES.get()
}

#[inline]
pub(crate) fn write() {
    if cfg!(debug_assertions) {
        WRITES.set(WRITES.get() + 1);
    }
}

macro_rules! word {
    ($name:ident, $value:ty) => {
        /// As the type of the same name in the standard library.
        #[derive(Debug, Default)]
        pub struct $name(atomic::$name);

        #[allow(dead_code, reason = "all types have the same methods")]
        impl $name {
            pub const fn new(value: $value) -> Self {
                Self(atomic::$name::new(value))
            }

            #[inline]
            pub fn load(&self, order: Ordering) -> $value {
                self.0.load(order)
            }

            #[inline]
            pub fn store(&self, value: $value, order: Ordering) {
                write();
                self.0.store(value, order);
            }

            #[inline]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                write();
                self.0.swap(value, order)
            }

            #[inline]
            pub fn compare_exchange(
                &self,
                old: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                write();
                self.0.compare_exchange(old, new, success, failure)
            }
        }
    };
}

macro_rules! number {
    ($name:ident, $value:ty) => {
        word!($name, $value);

        #[allow(dead_code, reason = "all types have the same methods")]
        impl $name {
            #[inline]
            pub fn fetch_add(&self, more: $value, order: Ordering) -> $value {
                write();
                self.0.fetch_add(more, order)
            }

            #[inline]
            pub fn fetch_sub(&self, less: $value, order: Ordering) -> $value {
                write();
                self.0.fetch_sub(less, order)
            }

            #[inline]
            pub fn fetch_update(
                &self,
                success: Ordering,
                failure: Ordering,
                next: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                write();
                self.0.fetch_update(success, failure, next)
            }
        }
    };
}

word!(AtomicBool, bool);
number!(AtomicU16, u16);
number!(AtomicU32, u32);
number!(AtomicU64, u64);
number!(AtomicUsize, usize);
