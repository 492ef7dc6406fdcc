//! What can be locked, as one number each.

use std::hash::{Hash, Hasher};

use crate::slots::Position;

/// Names under which a file can be locked: a session takes one, who wants the file alone takes all,
/// so that sessions on different CPUs do not meet at one name.
pub const FILE_PARTS: u64 = 16;

/// What is locked. Names that are equal by a collision of hashes cost a needless wait.
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

    /// What is between an entry of a key and the one before it; `None` is the end.
    pub fn gap(file: u32, key: usize, entry: Option<&[u8]>) -> Self {
        let (space, id) = (3 + 2 * key as u32, entry.map_or(0, hash));
        Self { file, space, id }
    }

    pub fn is_file(&self) -> bool {
        self.space == 0
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}
