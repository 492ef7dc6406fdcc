//! The ring buffer into which the kernel writes an event's records.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{ProbeError, Result, process};

/// Length of the records of counts, births and deaths.
pub const RECORD_BYTES: usize = 32;
/// Longest record: its length is a number of 16 bits.
const RECORD_BYTES_MAX: usize = 1 << 16;

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

    /// Reads all records: the kind of each, and its first bytes (of a shorter one, with what follows it).
    /// A place that holds no record is skipped.
    pub fn take(&mut self, mut give: impl FnMut(u32, &[u8; RECORD_BYTES])) {
        self.each(|ring, at, kind, _| {
            let mut record = [0; RECORD_BYTES];
            ring.copy(at, &mut record);
            give(kind, &record);
        });
    }

    /// Reads all records: the kind of each, and all of its bytes.
    pub fn take_whole(&mut self, mut give: impl FnMut(u32, &[u8])) {
        let mut record = Vec::new();
        self.each(|ring, at, kind, size| {
            record.resize(size.clamp(8, RECORD_BYTES_MAX), 0);
            ring.copy(at, &mut record);
            give(kind, &record);
        });
    }

    /// Gives the place, the kind and the length of each record.
    fn each(&mut self, mut give: impl FnMut(&Self, u64, u32, usize)) {
        let head = self.end(DATA_HEAD).load(Ordering::Acquire);
        let mut tail = self.end(DATA_TAIL).load(Ordering::Relaxed);
        while tail < head {
            let mut header = [0; 8];
            self.copy(tail, &mut header);
            let kind = u32_at(&header, 0);
            let size = match u16::from_le_bytes([header[6], header[7]]) {
                0..8 => RECORD_BYTES,
                size => usize::from(size).next_multiple_of(8),
            };
            give(self, tail, kind, size);
            tail += size as u64;
        }
        self.end(DATA_TAIL).store(head, Ordering::Release);
    }

    fn end(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both offsets are aligned and inside the first page, which lives as long as
        // `self` and is only touched through atomics.
        unsafe { AtomicU64::from_ptr(self.base.add(offset).cast()) }
    }

    /// Copies a record, a multiple of eight bytes, out of the ring, around its end if need be. Records lie
    /// at such multiples, and a ring's length is a power of two.
    fn copy(&self, from: u64, record: &mut [u8]) {
        let mask = self.pages * self.page_bytes - 1;
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
