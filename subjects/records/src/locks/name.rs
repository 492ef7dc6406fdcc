//! Names of locks.

use std::hash::BuildHasher;

use crate::slots::Position;
use crate::status::Status;
use crate::table::Hashing;

/// The lock on a file has this many parts: a session takes one, and an exclusive transaction takes
/// all. So sessions on different CPUs use different locks.
pub const FILE_PARTS: u64 = 16;

/// What is locked. A collision of hashes costs a needless wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LockName {
    file: u32,
    space: u32,
    id: u64,
}

impl LockName {
    /// A part of the whole file.
    pub fn file(file: u32, part: u64) -> Self {
        let id = part % FILE_PARTS;
        Self { file, space: 0, id }
    }

    pub fn record(file: u32, position: Position) -> Self {
        let id = position.number();
        Self { file, space: 1, id }
    }

    /// A value of a key without duplicates, whether a record has it or not.
    pub fn value(file: u32, key: usize, value: &[u8]) -> Self {
        let (space, id) = (2 + 2 * key as u32, hash(value));
        Self { file, space, id }
    }

    /// The gap between an entry of a key and the one before it; `None` is the end.
    pub fn gap(file: u32, key: usize, entry: Option<&[u8]>) -> Self {
        let (space, id) = (3 + 2 * key as u32, entry.map_or(0, hash));
        Self { file, space, id }
    }

    /// The number of its file.
    pub fn file_number(&self) -> u32 {
        self.file
    }

    pub fn is_file(&self) -> bool {
        self.space == 0
    }

    /// Which part of the file, if it is one.
    pub fn part(&self) -> Option<u64> {
        self.is_file().then_some(self.id)
    }

    /// The status of an operation that does not wait for the lock.
    pub fn in_use(&self) -> Status {
        if self.is_file() {
            Status::FileInUse
        } else {
            Status::RecordInUse
        }
    }
}

fn hash(bytes: &[u8]) -> u64 {
    Hashing::default().hash_one(bytes)
}
