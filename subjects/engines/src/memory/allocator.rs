//! The global allocator of programs with engines.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

use crate::memory::arena::Arena;

/// Allocates in shared memory once that is open, and with the system's allocator before.
///
/// ```no_run
/// use concurve_engines::memory::SharedAllocator;
///
/// #[global_allocator]
/// static ALLOCATOR: SharedAllocator = SharedAllocator;
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct SharedAllocator;

// SAFETY: a block or run has one user at a time, until it is freed to where it came from.
unsafe impl GlobalAlloc for SharedAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match Arena::in_use() {
            None => unsafe { System.alloc(layout) },
            Some(arena) => arena.allocate(layout),
        }
    }

    #[inline]
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        match Arena::get() {
            Some(arena) if arena.contains(place) => unsafe { arena.free(place, layout) },
            _ => unsafe { System.dealloc(place, layout) },
        }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        unsafe {
            let new = Layout::from_size_align_unchecked(bytes, layout.align());
            match Arena::get() {
                Some(arena) if arena.contains(place) && arena.resize(place, layout, new) => {
                    return place;
                }
                Some(arena) if arena.contains(place) || Arena::in_use().is_some() => {}
                _ => return System.realloc(place, layout, bytes),
            }
            let moved = self.alloc(new);
            if !moved.is_null() {
                place.copy_to_nonoverlapping(moved, layout.size().min(bytes));
                self.dealloc(place, layout);
            }
            moved
        }
    }
}
