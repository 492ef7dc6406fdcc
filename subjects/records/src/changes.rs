//! The changes of a transaction, for its undo.

use std::ops::Range;

use crate::log::record::SlotChange;
use crate::slots::{Position, State};

/// Changes of slots, in order. Their bytes share one buffer.
#[derive(Debug, Default)]
pub struct Changes {
    list: Vec<Change>,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Change {
    transaction: u64,
    file: u32,
    position: Position,
    state_before: State,
    state_after: State,
    offset: u16,
    before: Range<usize>,
    after: Range<usize>,
}

impl Changes {
    pub fn push(&mut self, change: &SlotChange) {
        let mut keep = |part: &[u8]| {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(part);
            start..self.bytes.len()
        };
        let (before, after) = (keep(change.before), keep(change.after));
        self.list.push(Change {
            transaction: change.transaction,
            file: change.file,
            position: change.position,
            state_before: change.state_before,
            state_after: change.state_after,
            offset: change.offset,
            before,
            after,
        });
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The memory that they take.
    pub fn memory_bytes(&self) -> u64 {
        (self.list.capacity() * size_of::<Change>() + self.bytes.capacity()) as u64
    }

    /// The memory that a change takes at least, if it inserts a record of so many bytes.
    pub fn memory_bytes_of(record_bytes: u64) -> u64 {
        size_of::<Change>() as u64 + record_bytes
    }

    pub fn clear(&mut self) {
        self.list.clear();
        self.bytes.clear();
    }

    /// All changes from `first` on.
    pub fn from(&self, first: usize) -> impl DoubleEndedIterator<Item = SlotChange<'_>> {
        self.list[first..].iter().map(|it| SlotChange {
            transaction: it.transaction,
            file: it.file,
            position: it.position,
            state_before: it.state_before,
            state_after: it.state_after,
            offset: it.offset,
            before: &self.bytes[it.before.clone()],
            after: &self.bytes[it.after.clone()],
        })
    }
}
