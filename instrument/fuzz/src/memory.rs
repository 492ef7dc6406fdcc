//! Counts what a thread has allocated, so that a test can bound the memory of a parser.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes that this thread has allocated and not freed. Below 0 if it frees what others allocated.
    static NOW: Cell<i64> = const { Cell::new(0) };
    static MOST: Cell<i64> = const { Cell::new(0) };
}

/// The system's allocator, which counts for each thread. A test program that has it as its
/// `#[global_allocator]` has the memory of each case checked.
pub struct Counting;

impl Counting {
    /// Begins to count anew in this thread.
    pub(crate) fn begin() {
        NOW.set(0);
        MOST.set(0);
    }

    /// The most bytes that were allocated at one time since the begin; 0 without this allocator.
    pub(crate) fn most() -> u64 {
        u64::try_from(MOST.get()).unwrap_or(0)
    }

    fn count(bytes: i64) {
        // While a thread ends, its cells may be gone.
        let _ = NOW.try_with(|now| {
            now.set(now.get() + bytes);
            let _ = MOST.try_with(|most| most.set(most.get().max(now.get())));
        });
    }
}

// SAFETY: all calls go to the system's allocator as they come; counting allocates nothing, because the
// cells are made without an allocation and have nothing to drop.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size() as i64);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size() as i64);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count(size as i64 - layout.size() as i64);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        Self::count(-(layout.size() as i64));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(place, layout) }
    }
}
