//! The free blocks of one thread.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::compiler_fence;

use crossbeam_utils::CachePadded;

use crate::memory::sizes::SIZES;

/// A free block: it points to the next one.
#[repr(C)]
pub struct Block {
    next: *mut Block,
}

/// Free blocks of one size, as a stack.
#[repr(C)]
pub struct List {
    head: Cell<*mut Block>,
    /// The number of blocks. May be wrong by one for each time that the process was killed.
    count: Cell<usize>,
}

/// The free blocks of one thread, by size. All zeros is an empty cache.
pub type ThreadCache = CachePadded<[List; SIZES]>;

// The arena has one for each seat, in memory that processes share: the layout is fixed.
const _: () = assert!(align_of::<ThreadCache>() >= 64);
const _: () = assert!(
    size_of::<ThreadCache>()
        == (SIZES * size_of::<List>()).next_multiple_of(align_of::<ThreadCache>())
);

impl List {
    pub const fn new() -> Self {
        Self {
            head: Cell::new(ptr::null_mut()),
            count: Cell::new(0),
        }
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.count.get()
    }

    /// Removes a block.
    ///
    /// # Safety
    /// The blocks in the list are free, and it is used by one thread at a time.
    #[inline]
    pub unsafe fn pop(&self) -> Option<*mut u8> {
        let block = self.head.get();
        if block.is_null() {
            return None;
        }
        // One store removes it: a thread that is killed before or after leaves a consistent list.
        self.head.set(unsafe { (*block).next });
        self.count.set(self.count.get().saturating_sub(1));
        Some(block.cast())
    }

    /// Adds a block.
    ///
    /// # Safety
    /// The block is of the list's size, is free, and the list is used by one thread at a time.
    #[inline]
    pub unsafe fn push(&self, block: *mut u8) {
        let block: *mut Block = block.cast();
        unsafe { (*block).next = self.head.get() };
        // A process dies between two instructions, so only the compiler could reorder these.
        compiler_fence(SeqCst);
        self.head.set(block);
        self.count.set(self.count.get() + 1);
    }
}
