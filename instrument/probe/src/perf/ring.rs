//! The ring buffer into which the kernel writes an event's records.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{ProbeError, Result, process};

/// Every record that is requested here has this length.
pub const RECORD_BYTES: usize = 32;

/// Offsets of the ring's ends in its first page (`struct perf_event_mmap_page`).
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// A control page, followed by the ring of records.
#[derive(Debug)]
pub struct Ring {
    base: *mut u8,
    page_bytes: usize,
    pages: usize,
}

impl Ring {
    /// Maps a ring of this many pages, or of half as many until it fits into the memory that
    /// this user may lock.
    pub fn map(event: &File, pages_wanted: usize) -> Result<Self> {
        let mut pages = pages_wanted;
        loop {
            match Self::map_exactly(event, pages) {
                Err(error) if error.errno() == Some(libc::EPERM) && pages > 1 => pages /= 2,
                Err(error) if error.errno() == Some(libc::EPERM) => {
                    return Err(ProbeError::Unavailable(
                        "no memory may be locked for a perf ring: raise \
                         kernel.perf_event_mlock_kb or `ulimit -l`"
                            .into(),
                    ));
                }
                other => return other,
            }
        }
    }

    fn map_exactly(event: &File, pages: usize) -> Result<Self> {
        let page_bytes = process::page_bytes() as usize;
        // SAFETY: a new mapping of a descriptor that is open; nothing else has its address.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                (1 + pages) * page_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(ProbeError::last("map a perf ring"));
        }
        Ok(Self {
            base: base.cast(),
            page_bytes,
            pages,
        })
    }

    /// Reads all records: the kind of each, and its bytes (of a shorter one, with what follows it). A
    /// place that holds no record is skipped.
    pub fn take(&mut self, mut give: impl FnMut(u32, &[u8; RECORD_BYTES])) {
        let head = self.end(DATA_HEAD).load(Ordering::Acquire);
        let mut tail = self.end(DATA_TAIL).load(Ordering::Relaxed);
        while tail < head {
            let record = self.copy(tail);
            let kind = u32_at(&record, 0);
            let size = match u16::from_le_bytes([record[6], record[7]]) {
                0..8 => RECORD_BYTES as u64,
                size => u64::from(size).next_multiple_of(8),
            };
            give(kind, &record);
            tail += size;
        }
        self.end(DATA_TAIL).store(head, Ordering::Release);
    }

    fn end(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both offsets are aligned and inside the first page, which lives as long as
        // `self` and is only touched through atomics.
        unsafe { AtomicU64::from_ptr(self.base.add(offset).cast()) }
    }

    /// Copies a record out of the ring, around its end if need be. Records lie at multiples of
    /// eight bytes, and a ring's length is a power of two.
    fn copy(&self, from: u64) -> [u8; RECORD_BYTES] {
        let mask = self.pages * self.page_bytes - 1;
        let mut record = [0; RECORD_BYTES];
        for (index, bytes) in record.chunks_exact_mut(8).enumerate() {
            let offset = (from as usize + 8 * index) & mask & !7;
            // SAFETY: aligned and inside the mapping. The kernel may write there, so the read
            // is volatile; any bytes are a valid value.
            let word = unsafe {
                let data = self.base.add(self.page_bytes + offset);
                data.cast::<u64>().read_volatile()
            };
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
        record
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this mapping was made by `map` and nobody else knows of it.
        unsafe { libc::munmap(self.base.cast(), (1 + self.pages) * self.page_bytes) };
    }
}

/// Eight bytes as a little-endian number, which is the native order wherever this runs.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}
