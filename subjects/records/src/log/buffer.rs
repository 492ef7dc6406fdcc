//! The newest part of the log: in memory until it is written, or in its file from the beginning.

use std::sync::Arc;

use crate::log::record::{self, Record};
use crate::storage::Disk;

/// A larger buffer is written, even if no thread waits for it.
pub const FULL_BYTES: usize = 1 << 20;

/// A part of a file into which records are put, prepared in one step.
pub const PART_BYTES: u64 = 1 << 17;

/// Capacity at first: a little more than the length at which it is written.
const CAPACITY: usize = FULL_BYTES + FULL_BYTES / 4;

/// What was appended and is not written. What is needed to put records into the file stands first.
#[repr(C)]
pub(super) struct Buffer {
    /// LSN of its first byte.
    start: u64,
    /// What the last [`Record::Forced`] in the log says.
    noted: u64,
    /// Records are put into this file, and nothing is kept here.
    target: Option<Target>,
    bytes: Vec<u8>,
}

/// A file of the log that is written through memory ([`Disk::put`]).
pub(super) struct Target {
    pub file: Arc<dyn Disk>,
    /// LSN of its first byte.
    pub first: u64,
    /// The log continues in another file when it has reached this byte.
    pub end: u64,
}

impl Buffer {
    /// Empty, at a byte of the log; all before was forced to the disk.
    pub fn new(start: u64, target: Option<Target>) -> Self {
        Self {
            start,
            bytes: Self::memory(),
            noted: start,
            target,
        }
    }

    /// Memory for what is appended.
    pub fn memory() -> Vec<u8> {
        Vec::with_capacity(CAPACITY)
    }

    /// Where the next record will begin.
    pub fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// How much is to be written.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends a frame. Whether it is in the file now: if not, it is to be written.
    pub fn append(&mut self, frame: &mut [u8], synced: u64) -> bool {
        if self.target.is_some() {
            self.note_forced(synced);
        }
        record::set_lsn(frame, self.end());
        self.add(frame)
    }

    /// If what was appended from a byte on has reached another part of the file: the file, and where the part
    /// after that one begins. Who has appended it prepares that part, without the latch of the buffer: so
    /// nobody waits for the kernel with the latch, and the others have a part to append to meanwhile.
    pub fn ahead(&self, begin: u64) -> Option<(Arc<dyn Disk>, u64)> {
        let Target { file, first, .. } = self.target.as_ref()?;
        let part = |at: u64| (at - first) / PART_BYTES;
        let now = part(self.end());
        (part(begin) < now).then(|| (Arc::clone(file), (now + 1) * PART_BYTES))
    }

    fn add(&mut self, frame: &[u8]) -> bool {
        let at = self.end();
        if let Some(Target { file, first, end }) = &self.target {
            if at < *end && file.put(frame, at - first) {
                self.start += frame.len() as u64;
                return true;
            }
            // From here on the log has to be written, in order.
            self.target = None;
        }
        self.bytes.extend_from_slice(frame);
        false
    }

    /// Each write says what was forced before it: so a torn end can be told from damage.
    fn note_forced(&mut self, synced: u64) {
        if synced <= self.noted {
            return;
        }
        let mut frame = record::frame(&Record::Forced { before: synced });
        record::set_lsn(&mut frame, self.end());
        self.add(&frame);
        self.noted = synced;
    }

    /// Gives what is to be written for memory that is empty; returns where in the log it begins.
    pub fn take(&mut self, synced: u64, spare: &mut Vec<u8>) -> u64 {
        self.note_forced(synced);
        let start = self.start;
        self.start = self.end();
        std::mem::swap(&mut self.bytes, spare);
        start
    }

    /// Puts records into a file from now on. Gives it back while something else is to be written before
    /// them: a process that is killed must not leave a gap in the log.
    pub fn set_target(&mut self, target: Target) -> Option<Target> {
        if !self.bytes.is_empty() {
            return Some(target);
        }
        self.target = Some(target);
        None
    }

    /// From now on records are kept here until they are written.
    pub fn remove_target(&mut self) {
        self.target = None;
    }
}
