//! A thread's own free blocks.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::compiler_fence;

use crate::memory::sizes::SIZES;

/// A free block: it holds the next one.
#[repr(C)]
pub struct Block {
    next: *mut Block,
}

/// Free blocks of one size, the last one freed first.
#[repr(C)]
pub struct List {
    head: Cell<*mut Block>,
    /// About how many: one less or more for each time that its process was killed.
    count: Cell<usize>,
}

/// All zeros is an empty lane. On cache lines of its own.
#[repr(C, align(128))]
pub struct Lane(pub [List; SIZES]);

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

    /// Takes a block.
    ///
    /// # Safety
    /// The blocks in the list are free, and it is used by one thread at a time.
    #[inline]
    pub unsafe fn pop(&self) -> Option<*mut u8> {
        let block = self.head.get();
        if block.is_null() {
            return None;
        }
        // One store takes it: whoever is killed before or after leaves a list that is whole.
        self.head.set(unsafe { (*block).next });
        self.count.set(self.count.get().saturating_sub(1));
        Some(block.cast())
    }

    /// Puts a block in.
    ///
    /// # Safety
    /// The block is of the list's size, is free, and the list is used by one thread at a time.
    #[inline]
    pub unsafe fn push(&self, block: *mut u8) {
        let block: *mut Block = block.cast();
        unsafe { (*block).next = self.head.get() };
        // A process dies between two instructions: only the compiler could bring these out of order.
        compiler_fence(SeqCst);
        self.head.set(block);
        self.count.set(self.count.get() + 1);
    }
}
