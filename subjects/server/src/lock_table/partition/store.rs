//! How a partition stores locks and removes them.

use std::hash::BuildHasher;

use super::{Chain, Partition, Table};
use crate::lock_table::argument::{Text, is_generic};
use crate::lock_table::entry::{Entry, Group, OwnerId};
use crate::lock_table::mode::Mode;
use crate::lock_table::request::{Counts, Journal};
use crate::slab::NONE;

impl Partition {
    pub(super) fn add_table(&mut self, name: &[u8]) -> u32 {
        let at = self.tables.insert(Table {
            name: Text::new(name),
            groups: 0,
            length_indexes: Vec::new(),
        });
        let (hasher, tables) = (&self.hasher, &self.tables);
        let rehash = |at: &u32| hasher.hash_one(tables[*at].name.as_bytes());
        self.names.insert_unique(hasher.hash_one(name), at, rehash);
        at
    }

    pub(super) fn add_group(&mut self, table: u32, argument: &[u8]) -> u32 {
        let at = self.groups.insert(Group {
            argument: Text::new(argument),
            table,
            head: NONE,
            held: [0; 4],
            in_trie: false,
        });
        self.index.insert(self.hash((table, argument)), at);
        let stored = &mut self.tables[table];
        stored.groups += 1;
        if is_generic(argument) {
            let length_index = stored.length_index_made(argument.len());
            length_index.add_generic(argument, at);
        } else if let Some(length_index) = stored.length_index_mut(argument.len()) {
            length_index.add_exact(at, table, &mut self.groups);
        }
        self.usage.add_argument();
        at
    }

    pub(super) fn add_entry(&mut self, group: u32, owner: OwnerId, mode: Mode) -> u32 {
        let head = self.groups[group].head;
        let next = if head == NONE {
            NONE
        } else {
            self.entries[head].next
        };
        let chain = self.chain(owner).map_or(NONE, |chain| chain.head);
        let at = self.entries.insert(Entry {
            owner,
            group,
            next,
            previous: head,
            owner_next: chain,
            owner_previous: NONE,
            dialog: 0,
            update: 0,
            mode,
            backup: false,
        });
        if head == NONE {
            self.groups[group].head = at;
        } else {
            self.entries[head].next = at;
            if next != NONE {
                self.entries[next].previous = at;
            }
            self.index_further_lock(at);
        }
        self.groups[group].held[mode as usize] += 1;
        self.lengthen_chain(owner, chain, at);
        at
    }

    /// Sets how often a lock is held, removes it at zero, and writes the change to the journal.
    pub(super) fn set_counts(&mut self, at: u32, counts: Counts, journal: &mut dyn Journal) {
        let entry = &mut self.entries[at];
        let before = entry.update;
        (entry.dialog, entry.update) = (counts.dialog, counts.update);
        let entry = &self.entries[at];
        if entry.backup && before != counts.update {
            let subject = self.subject(entry.group);
            journal.held(subject, entry.mode, entry.owner, counts.update);
        }
        if counts == Counts::NONE {
            self.remove_entry(at);
        }
    }

    pub(super) fn change_mode(&mut self, at: u32, mode: Mode) {
        let group = self.entries[at].group;
        let is_head = self.groups[group].head == at;
        if !is_head {
            self.unindex_further_lock(at);
        }
        let held = &mut self.groups[group].held;
        held[self.entries[at].mode as usize] -= 1;
        held[mode as usize] += 1;
        self.entries[at].mode = mode;
        if !is_head {
            self.index_further_lock(at);
        }
    }

    fn remove_entry(&mut self, at: u32) {
        let (group, owner, mode) = {
            let entry = &self.entries[at];
            (entry.group, entry.owner, entry.mode)
        };
        let (next, previous) = (self.entries[at].next, self.entries[at].previous);
        if previous == NONE {
            self.groups[group].head = next;
            if next != NONE {
                self.unindex_further_lock(next);
            }
        } else {
            self.unindex_further_lock(at);
            self.entries[previous].next = next;
        }
        if next != NONE {
            self.entries[next].previous = previous;
        }
        self.groups[group].held[mode as usize] -= 1;
        self.shorten_chain(owner, at);
        self.entries.remove(at);
        self.usage.release_lock();
        if next == NONE && previous == NONE {
            self.remove_group(group);
        }
    }

    fn remove_group(&mut self, at: u32) {
        let group = &self.groups[at];
        let (table, argument) = (group.table, group.argument.as_bytes());
        let hash = self.hash((table, argument));
        let stored = &mut self.tables[table];
        stored.groups -= 1;
        let left = stored.groups;
        if let Some(length_index) = stored.length_index_mut(argument.len()) {
            if is_generic(argument) {
                length_index.remove_generic(argument, at);
            } else if group.in_trie {
                length_index.remove_exact(argument);
            }
        }
        self.index.remove(hash, at);
        self.groups.remove(at);
        self.usage.remove_argument();
        if left == 0 {
            self.remove_table(table);
        }
    }

    fn remove_table(&mut self, at: u32) {
        let hash = self.hash(self.tables[at].name.as_bytes());
        if let Ok(found) = self.names.find_entry(hash, |it| *it == at) {
            found.remove();
        }
        self.tables.remove(at);
    }

    pub(super) fn index_further_lock(&mut self, at: u32) {
        let (hasher, entries) = (&self.hasher, &self.entries);
        let key = |at: u32| {
            let entry = &entries[at];
            hasher.hash_one((entry.group, entry.owner, entry.mode))
        };
        self.further_locks.insert_unique(key(at), at, |it| key(*it));
    }

    pub(super) fn unindex_further_lock(&mut self, at: u32) {
        let entry = &self.entries[at];
        let hash = self.hash((entry.group, entry.owner, entry.mode));
        if let Ok(found) = self.further_locks.find_entry(hash, |it| *it == at) {
            found.remove();
        }
    }

    pub(super) fn lengthen_chain(&mut self, owner: OwnerId, head: u32, at: u32) {
        if head != NONE {
            self.entries[head].owner_previous = at;
        }
        let hash = self.hash(owner);
        if let Some(chain) = self.chains.find_mut(hash, |it| it.owner == owner) {
            chain.head = at;
            chain.length += 1;
            return;
        }
        let hasher = &self.hasher;
        let chain = Chain {
            owner,
            head: at,
            length: 1,
        };
        self.chains
            .insert_unique(hash, chain, |it| hasher.hash_one(it.owner));
    }

    pub(super) fn shorten_chain(&mut self, owner: OwnerId, at: u32) {
        let (next, previous) = {
            let entry = &self.entries[at];
            (entry.owner_next, entry.owner_previous)
        };
        if next != NONE {
            self.entries[next].owner_previous = previous;
        }
        if previous != NONE {
            self.entries[previous].owner_next = next;
        }
        let hash = self.hash(owner);
        if let Ok(mut found) = self.chains.find_entry(hash, |it| it.owner == owner) {
            let chain = found.get_mut();
            chain.length -= 1;
            if chain.length == 0 {
                found.remove();
            } else if previous == NONE {
                chain.head = next;
            }
        }
    }
}
