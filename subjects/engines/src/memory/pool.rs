//! Free blocks of one size that are in no thread cache, and the slabs that they belong to.
#![allow(unsafe_code)]

use std::ptr;

use crate::memory::sizes::{UNIT, block_bytes, blocks};
use crate::memory::thread_cache::List;

/// The end of a list of slabs.
const NONE: u32 = u32::MAX;

/// The state of a unit that is a slab. Guarded by the latch of its pool.
#[repr(C)]
pub struct Slab {
    /// Blocks that were freed.
    free: List,
    /// Blocks from this one on were never used: their memory has not been touched.
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
    /// Blocks in thread caches or in use.
    pub out: usize,
}

/// Where the units of an arena are, and the table of slabs.
#[derive(Clone, Copy)]
pub struct Region {
    pub base: *mut u8,
    pub slabs: *mut Slab,
}

impl Region {
    fn slab(&self, unit: u32) -> *mut Slab {
        // SAFETY: the arena allocated these numbers of units.
        unsafe { self.slabs.add(unit as usize) }
    }

    pub fn address(&self, unit: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe { self.base.add(unit * UNIT) }
    }

    pub fn unit_of(&self, place: *mut u8) -> usize {
        (place.addr() - self.base.addr()) / UNIT
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
    /// The pool is of this size, and of this region.
    pub unsafe fn take(&mut self, region: Region, size: usize) -> Option<*mut u8> {
        if self.first == NONE {
            return None;
        }
        let unit = self.first;
        unsafe {
            let slab = region.slab(unit);
            let block = (*slab).free.pop().unwrap_or_else(|| {
                let fresh = (*slab).fresh as usize;
                (*slab).fresh += 1;
                region.address(unit as usize).add(fresh * block_bytes(size))
            });
            if Self::is_full(slab, size) {
                self.unlink(region, unit);
            }
            self.out += 1;
            Some(block)
        }
    }

    /// Makes a unit a slab.
    ///
    /// # Safety
    /// As `take`, and the unit is not in use.
    pub unsafe fn add(&mut self, region: Region, unit: usize) {
        let slab = Slab {
            free: List::new(),
            fresh: 0,
            next: NONE,
            previous: NONE,
        };
        unsafe { ptr::write(region.slab(unit as u32), slab) };
        self.slabs += 1;
        unsafe { self.link(region, unit as u32) };
    }

    /// Frees a block. Returns its slab's unit if all blocks of the slab are free, unless it is the
    /// only slab with free blocks: the next request would take it again.
    ///
    /// # Safety
    /// As `take`; the block came from it and is free.
    pub unsafe fn give_back(
        &mut self,
        region: Region,
        size: usize,
        block: *mut u8,
    ) -> Option<usize> {
        let unit = region.unit_of(block) as u32;
        self.out -= 1;
        unsafe {
            let slab = region.slab(unit);
            let was_full = Self::is_full(slab, size);
            (*slab).free.push(block);
            if was_full {
                self.link(region, unit);
            }
            let is_whole = (*slab).free.count() == (*slab).fresh as usize;
            let is_alone = self.first == unit && (*slab).next == NONE;
            if !is_whole || is_alone {
                return None;
            }
            self.unlink(region, unit);
        }
        self.slabs -= 1;
        Some(unit as usize)
    }

    unsafe fn is_full(slab: *mut Slab, size: usize) -> bool {
        unsafe { (*slab).free.count() == 0 && (*slab).fresh as usize == blocks(size) }
    }

    unsafe fn link(&mut self, region: Region, unit: u32) {
        unsafe {
            let slab = region.slab(unit);
            (*slab).previous = NONE;
            (*slab).next = self.first;
            if self.first != NONE {
                (*region.slab(self.first)).previous = unit;
            }
        }
        self.first = unit;
    }

    unsafe fn unlink(&mut self, region: Region, unit: u32) {
        unsafe {
            let (next, previous) = {
                let slab = region.slab(unit);
                ((*slab).next, (*slab).previous)
            };
            if next != NONE {
                (*region.slab(next)).previous = previous;
            }
            if previous == NONE {
                self.first = next;
            } else {
                (*region.slab(previous)).next = next;
            }
        }
    }
}
