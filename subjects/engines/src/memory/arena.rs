//! The shared memory: its parts, and allocation from it.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::ptr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use concurve_latch::{Mutex, SEATS, seat_number};
use rustix::mm::{Advice, madvise};

use crate::memory::pool::{Pool, Region, Slab};
use crate::memory::sizes::{SIZES, UNIT, batch, block_bytes, size_of_layout};
use crate::memory::thread_cache::ThreadCache;
use crate::memory::units::{UNITS_MAX, Units};

/// A run of at least so many units is returned to the system, not only to the arena.
const RETURNED_UNITS: usize = 16;

/// The arena begins at a multiple of this, and larger alignments are refused.
pub const ALIGN_MAX: usize = 2 << 20;

/// The state of the memory, itself in shared memory. Its tables are large enough for the largest
/// arena; only the parts in use occupy memory.
#[repr(C)]
pub struct Arena {
    pub region: Region,
    pub bytes: usize,
    /// The remedy in the message when it is exhausted.
    pub remedy: &'static str,
    pub is_exhausted: AtomicBool,
    pub pools: [Mutex<Pool>; SIZES],
    pub thread_caches: [ThreadCache; SEATS],
    pub slabs: [Slab; UNITS_MAX],
    /// Last: its value starts as the zeros of the mapping.
    pub units: Mutex<Units>,
}

impl Arena {
    /// Whether this place was allocated here.
    #[inline]
    pub fn contains(&self, place: *mut u8) -> bool {
        place.addr().wrapping_sub(self.region.base.addr()) < self.bytes
    }

    /// Null if none is left.
    #[inline]
    pub fn allocate(&self, layout: Layout) -> *mut u8 {
        let Some(size) = size_of_layout(layout) else {
            return self.allocate_run(layout);
        };
        let list = &self.thread_caches[seat_number()][size];
        // SAFETY: a seat belongs to one thread.
        match unsafe { list.pop() } {
            Some(block) => block,
            None => self.fill(size),
        }
    }

    /// # Safety
    /// `place` was allocated here with this layout, and is no longer used.
    #[inline]
    pub unsafe fn free(&self, place: *mut u8, layout: Layout) {
        let Some(size) = size_of_layout(layout) else {
            return self.free_run(self.region.unit_of(place), units(layout.size()));
        };
        let list = &self.thread_caches[seat_number()][size];
        // SAFETY: a seat belongs to one thread, and the caller no longer uses the block.
        unsafe { list.push(place) };
        if list.count() > 2 * batch(size) {
            self.empty(size);
        }
    }

    /// Changes the size in place, if possible.
    ///
    /// # Safety
    /// `place` was allocated here with this layout.
    pub unsafe fn resize(&self, place: *mut u8, old: Layout, new: Layout) -> bool {
        match (size_of_layout(old), size_of_layout(new)) {
            (Some(before), Some(after)) => before == after,
            (None, None) => {
                let begin = self.region.unit_of(place);
                let (before, after) = (units(old.size()), units(new.size()));
                if after < before {
                    self.free_run(begin + after, before - after);
                }
                after <= before || self.units.lock().take_at(begin + before, after - before)
            }
            _ => false,
        }
    }

    /// Refills the thread cache; returns a block.
    #[cold]
    #[inline(never)]
    fn fill(&self, size: usize) -> *mut u8 {
        let list = &self.thread_caches[seat_number()][size];
        let mut pool = self.pools[size].lock();
        // SAFETY: the pool is of this size; a seat belongs to one thread. Under the latch: a killed
        // process loses no block between the pool and the thread cache.
        unsafe {
            for _ in 0..batch(size) {
                match pool.take(self.region, size) {
                    Some(block) => list.push(block),
                    None if list.count() > 0 => break,
                    None => match self.take_units(1, 1) {
                        Some(unit) => pool.add(self.region, unit),
                        None => break,
                    },
                }
            }
            // Adding a slab took one iteration.
            let block = list.pop().or_else(|| pool.take(self.region, size));
            drop(pool);
            block.unwrap_or_else(|| self.report_exhausted(block_bytes(size)))
        }
    }

    /// Returns some blocks of the thread cache to the pool.
    #[cold]
    #[inline(never)]
    fn empty(&self, size: usize) {
        let list = &self.thread_caches[seat_number()][size];
        let mut pool = self.pools[size].lock();
        for _ in 0..batch(size) {
            // SAFETY: as in `fill`.
            let whole = unsafe {
                let Some(block) = list.pop() else { break };
                pool.give_back(self.region, size, block)
            };
            if let Some(unit) = whole {
                self.units.lock().give_back(unit, 1);
            }
        }
    }

    #[cold]
    fn allocate_run(&self, layout: Layout) -> *mut u8 {
        let align = units(layout.align()).max(1);
        match self.take_units(units(layout.size()).max(1), align) {
            Some(unit) => self.region.address(unit),
            None => self.report_exhausted(layout.size()),
        }
    }

    fn take_units(&self, count: usize, align: usize) -> Option<usize> {
        if align > ALIGN_MAX / UNIT {
            return None;
        }
        self.units.lock().take(count, align)
    }

    #[cold]
    fn free_run(&self, begin: usize, count: usize) {
        let count = count.max(1);
        if count >= RETURNED_UNITS {
            // SAFETY: it is not in use. If the system refuses, the arena keeps the memory.
            let _ = unsafe {
                let place = self.region.address(begin).cast();
                madvise(place, count * UNIT, Advice::LinuxRemove)
            };
        }
        self.units.lock().give_back(begin, count);
    }

    /// Writes a message once; returns null. Must not allocate.
    #[cold]
    fn report_exhausted(&self, wanted: usize) -> *mut u8 {
        if !self.is_exhausted.swap(true, Relaxed) {
            let mut text = StackText::default();
            let _ = std::fmt::write(
                &mut text,
                format_args!(
                    "the shared memory of {} MiB is exhausted (asked for {wanted} bytes more): {}\n",
                    self.bytes >> 20,
                    self.remedy
                ),
            );
            // Standard error may be closed.
            let _ = rustix::io::write(rustix::stdio::stderr(), &text.bytes[..text.length]);
        }
        ptr::null_mut()
    }
}

/// The number of units for so many bytes.
fn units(bytes: usize) -> usize {
    bytes.div_ceil(UNIT)
}

/// A text on the stack.
struct StackText {
    bytes: [u8; 256],
    length: usize,
}

impl Default for StackText {
    fn default() -> Self {
        Self {
            bytes: [0; 256],
            length: 0,
        }
    }
}

impl std::fmt::Write for StackText {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let rest = &mut self.bytes[self.length..];
        let bytes = text.len().min(rest.len());
        rest[..bytes].copy_from_slice(&text.as_bytes()[..bytes]);
        self.length += bytes;
        Ok(())
    }
}
