//! What a lock table stores: arguments, and the locks on each.

use crate::lock_table::argument::Text;
use crate::lock_table::mode::Mode;
use crate::lock_table::request::Counts;
use crate::slab::Slab;

/// Number of an owner in [`Owners`](crate::locks::owners::Owners).
pub type OwnerId = u32;

/// An argument of a table, with the locks on it. It fills one cache line.
#[derive(Debug)]
#[repr(align(64))]
pub struct Group {
    pub argument: Text,
    pub table: u32,
    /// First lock of the chain through `Entry::next`.
    pub head: u32,
    /// Locks by mode, in the order of the discriminants.
    pub held: [u32; 4],
    /// The argument is in the trie of exact arguments.
    pub in_trie: bool,
}

impl Group {
    pub fn holders(&self) -> u32 {
        self.held.iter().sum()
    }
}

/// A lock: one owner, one argument, one mode. 36 bytes.
#[derive(Debug)]
pub struct Entry {
    pub owner: OwnerId,
    pub group: u32,
    /// Neighbours on the same argument.
    pub next: u32,
    pub previous: u32,
    /// Neighbours of the same owner.
    pub owner_next: u32,
    pub owner_previous: u32,
    /// How often the dialog part of the owner holds it.
    pub dialog: u32,
    /// How often the update part of the owner holds it.
    pub update: u32,
    pub mode: Mode,
    /// The update part is written to the backup file.
    pub backup: bool,
}

impl Entry {
    /// How often it is held.
    pub fn counts(&self) -> Counts {
        Counts {
            dialog: self.dialog,
            update: self.update,
        }
    }
}

pub type Groups = Slab<Group>;
pub type Entries = Slab<Entry>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_as_small_as_promised() {
        assert!(size_of::<Option<Group>>() <= 64);
        assert!(size_of::<Option<Entry>>() <= 36);
    }
}
