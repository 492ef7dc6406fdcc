//! Huge pages for memory that is accessed at random: they save TLB misses.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;

/// Smallest memory that can hold a huge page on the processors we know.
const WORTHWHILE_BYTES: usize = 2 << 20;

/// Page size that the start is rounded up to; larger base pages only make the advice refused.
const PAGE_BYTES: usize = 4096;

/// Asks the kernel to back memory with huge pages, where it has them and the host allows it
/// (`/sys/kernel/mm/transparent_hugepage/enabled` is not `never`). Best called before the memory is
/// written. The content of the memory stays as it is; a refusal changes nothing.
pub fn prefer<T>(memory: &[MaybeUninit<T>]) {
    let range = memory.as_ptr_range();
    let start = (range.start as usize).next_multiple_of(PAGE_BYTES);
    let Some(length) = (range.end as usize).checked_sub(start) else {
        return;
    };
    if length < WORTHWHILE_BYTES {
        return;
    }
    // SAFETY: the whole pages are inside the borrowed memory, and the advice changes neither their
    // content nor their protection.
    unsafe {
        libc::madvise(start as *mut libc::c_void, length, libc::MADV_HUGEPAGE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_any_size_and_place_keeps_what_is_in_it() {
        for length in [0, 1, 1 << 10, 1 << 20] {
            let memory: Vec<MaybeUninit<u64>> = (0..length).map(MaybeUninit::new).collect();
            prefer(&memory);
            prefer(memory.get(1..).unwrap_or_default());
            // SAFETY: every element was written above.
            let read = memory.iter().map(|it| unsafe { it.assume_init() });
            assert!(read.eq(0..length));
        }
    }
}
