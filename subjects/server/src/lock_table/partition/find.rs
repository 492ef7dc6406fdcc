//! How a partition finds what it stores.

use std::hash::{BuildHasher, Hash};

use super::{Chain, Partition};
use crate::lock_table::entry::OwnerId;
use crate::lock_table::mode::Mode;
use crate::lock_table::request::{Listed, Request, Subject};
use crate::slab::NONE;

impl Partition {
    pub(super) fn hash(&self, value: impl Hash) -> u64 {
        self.hasher.hash_one(value)
    }

    pub(super) fn table(&self, name: &[u8]) -> Option<u32> {
        let is_it = |at: &u32| self.tables[*at].name.as_bytes() == name;
        self.names.find(self.hash(name), is_it).copied()
    }

    pub(super) fn group(&self, table: u32, argument: &[u8]) -> Option<u32> {
        let is_it = |at| {
            let group = &self.groups[at];
            group.table == table && group.argument.as_bytes() == argument
        };
        self.index.find(self.hash((table, argument)), is_it)
    }

    /// The owner's lock of this mode on an argument.
    pub(super) fn own(&self, group: u32, owner: OwnerId, mode: Mode) -> Option<u32> {
        let found = &self.groups[group];
        if found.held[mode as usize] == 0 {
            return None;
        }
        let is_it = |at: &u32| {
            let entry = &self.entries[*at];
            entry.group == group && entry.owner == owner && entry.mode == mode
        };
        if is_it(&found.head) {
            return Some(found.head);
        }
        if found.holders() == 1 {
            return None;
        }
        let hash = self.hash((group, owner, mode));
        self.further_locks.find(hash, is_it).copied()
    }

    pub(super) fn own_lock(&self, asked: &Request) -> Option<u32> {
        let table = self.table(asked.subject.table)?;
        let group = self.group(table, asked.subject.argument)?;
        self.own(group, asked.owner, asked.mode)
    }

    pub(super) fn chain(&self, owner: OwnerId) -> Option<&Chain> {
        self.chains.find(self.hash(owner), |it| it.owner == owner)
    }

    /// Whether an owner holds anything.
    pub fn holds(&self, owner: OwnerId) -> bool {
        self.chain(owner).is_some()
    }

    /// The lock in a numbered place, if there is one: for lists.
    pub fn listed(&self, place: u32) -> Option<Listed<'_>> {
        let entry = self.entries.get(place)?;
        Some(Listed {
            subject: self.subject(entry.group),
            entry,
        })
    }

    /// The number of places; numbers of locks are below it.
    pub fn places(&self) -> usize {
        self.entries.places()
    }

    /// Whether it holds no lock.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many locks each owner holds.
    pub fn owner_counts(&self) -> impl Iterator<Item = (OwnerId, u32)> {
        self.chains.iter().map(|it| (it.owner, it.length))
    }

    /// How many locks each argument has.
    pub fn argument_counts(&self) -> impl Iterator<Item = (Subject<'_>, u32)> {
        let groups = self.groups.iter();
        groups.map(|(at, group)| (self.subject(at), group.holders()))
    }

    pub(super) fn subject(&self, group: u32) -> Subject<'_> {
        let group = &self.groups[group];
        Subject {
            table: self.tables[group.table].name.as_bytes(),
            argument: group.argument.as_bytes(),
        }
    }

    pub(super) fn locks_on(&self, group: u32) -> impl Iterator<Item = u32> {
        let start = Some(self.groups[group].head);
        std::iter::successors(start, |at| {
            let next = self.entries[*at].next;
            (next != NONE).then_some(next)
        })
    }
}
