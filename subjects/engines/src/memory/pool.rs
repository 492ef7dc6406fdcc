//! Free blocks of one size that are in nobody's lane, and the slabs that they belong to.
#![allow(unsafe_code)]

use std::ptr;

use crate::memory::lane::List;
use crate::memory::sizes::{block_bytes, blocks};

/// The end of a list of slabs.
const NONE: u32 = u32::MAX;

/// What is known of a unit that is a slab. Guarded by the latch of the slab's pool.
#[repr(C)]
pub struct Slab {
    /// Blocks that were used and are free.
    free: List,
    /// Blocks from this one on were never used: they need not be touched yet.
    fresh: u32,
    /// Neighbours among the slabs that have free blocks.
    next: u32,
    previous: u32,
}

/// Slabs of one size of block.
#[repr(C)]
pub struct Pool {
    /// A slab with free blocks.
    first: u32,
    pub slabs: usize,
    /// Blocks in lanes or in use.
    pub out: usize,
}

/// Where the units of an arena are, and what is known of those that are slabs.
#[derive(Clone, Copy)]
pub struct Ground {
    pub base: *mut u8,
    pub slabs: *mut Slab,
}

impl Ground {
    fn slab(&self, unit: u32) -> *mut Slab {
        // SAFETY: units are numbers that the arena gave out.
        unsafe { self.slabs.add(unit as usize) }
    }

    pub fn address(&self, unit: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe { self.base.add(unit * crate::memory::sizes::UNIT) }
    }

    pub fn unit_of(&self, place: *mut u8) -> usize {
        (place.addr() - self.base.addr()) / crate::memory::sizes::UNIT
    }
}

impl Pool {
    pub const fn new() -> Self {
        Self {
            first: NONE,
            slabs: 0,
            out: 0,
        }
    }

    /// Takes a free block; `None` if there is no slab with one.
    ///
    /// # Safety
    /// The pool is of this size, and of this ground.
    pub unsafe fn take(&mut self, ground: Ground, size: usize) -> Option<*mut u8> {
        if self.first == NONE {
            return None;
        }
        let unit = self.first;
        unsafe {
            let slab = ground.slab(unit);
            let block = (*slab).free.pop().unwrap_or_else(|| {
                let fresh = (*slab).fresh as usize;
                (*slab).fresh += 1;
                ground.address(unit as usize).add(fresh * block_bytes(size))
            });
            if Self::is_full(slab, size) {
                self.unlink(ground, unit);
            }
            self.out += 1;
            Some(block)
        }
    }

    /// Makes a unit a slab.
    ///
    /// # Safety
    /// As `take`, and the unit is in nobody's use.
    pub unsafe fn add(&mut self, ground: Ground, unit: usize) {
        let slab = Slab {
            free: List::new(),
            fresh: 0,
            next: NONE,
            previous: NONE,
        };
        unsafe { ptr::write(ground.slab(unit as u32), slab) };
        self.slabs += 1;
        unsafe { self.link(ground, unit as u32) };
    }

    /// Gives a block back. A slab that is whole again leaves the pool, unless it is the only one with
    /// free blocks: the next request would take it again.
    ///
    /// # Safety
    /// As `take`; the block came from it and is free.
    pub unsafe fn give_back(
        &mut self,
        ground: Ground,
        size: usize,
        block: *mut u8,
    ) -> Option<usize> {
        let unit = ground.unit_of(block) as u32;
        self.out -= 1;
        unsafe {
            let slab = ground.slab(unit);
            let was_full = Self::is_full(slab, size);
            (*slab).free.push(block);
            if was_full {
                self.link(ground, unit);
            }
            let is_whole = (*slab).free.count() == (*slab).fresh as usize;
            let is_alone = self.first == unit && (*slab).next == NONE;
            if !is_whole || is_alone {
                return None;
            }
            self.unlink(ground, unit);
        }
        self.slabs -= 1;
        Some(unit as usize)
    }

    unsafe fn is_full(slab: *mut Slab, size: usize) -> bool {
        unsafe { (*slab).free.count() == 0 && (*slab).fresh as usize == blocks(size) }
    }

    unsafe fn link(&mut self, ground: Ground, unit: u32) {
        unsafe {
            let slab = ground.slab(unit);
            (*slab).previous = NONE;
            (*slab).next = self.first;
            if self.first != NONE {
                (*ground.slab(self.first)).previous = unit;
            }
        }
        self.first = unit;
    }

    unsafe fn unlink(&mut self, ground: Ground, unit: u32) {
        unsafe {
            let (next, previous) = {
                let slab = ground.slab(unit);
                ((*slab).next, (*slab).previous)
            };
            if next != NONE {
                (*ground.slab(next)).previous = previous;
            }
            if previous == NONE {
                self.first = next;
            } else {
                (*ground.slab(previous)).next = next;
            }
        }
    }
}
