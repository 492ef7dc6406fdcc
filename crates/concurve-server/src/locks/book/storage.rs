//! How the book finds, chains and forgets what it stores.

use std::hash::{BuildHasher, Hash};
use std::ops::ControlFlow;

use super::Rules;
use super::family::Family;
use super::{Book, Chain, Counts, Holder, Journal, Listed, Refusal, Request, Subject, Table};
use crate::locks::argument::{Text, is_generic, overlap};
use crate::locks::entry::{Entry, Group, OwnerId};
use crate::locks::mode::Mode;
use crate::locks::slab::NONE;

/// How far a chain is followed to name one of those in the way.
const NAMED_WITHIN: usize = 64;

impl Entry {
    pub fn counts(&self) -> Counts {
        Counts {
            dialog: self.dialog,
            update: self.update,
        }
    }
}

impl Table {
    pub(super) fn family(&self, length: usize) -> Option<&Family> {
        self.families.iter().find(|it| it.length == length)
    }

    fn family_mut(&mut self, length: usize) -> Option<&mut Family> {
        self.families.iter_mut().find(|it| it.length == length)
    }

    pub(super) fn family_made(&mut self, length: usize) -> &mut Family {
        let at = self.families.iter().position(|it| it.length == length);
        let at = at.unwrap_or_else(|| {
            self.families.push(Family::new(length));
            self.families.len() - 1
        });
        &mut self.families[at]
    }
}

// Finding.
impl Book {
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
        self.crowd.find(hash, is_it).copied()
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

    /// Owners that hold something.
    pub fn owners(&self) -> usize {
        self.chains.len()
    }

    /// Arguments on which something is held.
    pub fn arguments(&self) -> usize {
        self.groups.len()
    }

    /// The lock in a numbered place, and for lists how many places there are.
    pub fn listed(&self, place: u32) -> Option<Listed<'_>> {
        let entry = self.entries.get(place)?;
        Some(Listed {
            subject: self.subject(entry.group),
            entry,
        })
    }

    /// Numbers of locks are below it.
    pub fn places(&self) -> usize {
        self.entries.places()
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

    fn subject(&self, group: u32) -> Subject<'_> {
        let group = &self.groups[group];
        Subject {
            table: self.tables[group.table].name.as_bytes(),
            argument: group.argument.as_bytes(),
        }
    }

    /// The arguments with locks that overlap. Generic requests: after [`Book::prepare`].
    pub(super) fn overlapping(&self, subject: Subject) -> Vec<u32> {
        let mut found = Vec::new();
        let Some(table) = self.table(subject.table) else {
            return found;
        };
        if !is_generic(subject.argument) {
            found.extend(self.group(table, subject.argument));
        }
        let Some(family) = self.tables[table].family(subject.argument.len()) else {
            return found;
        };
        let _ = family.overlapping(subject.argument, &mut |group| {
            if overlap(self.groups[group].argument.as_bytes(), subject.argument) {
                found.push(group);
            }
            ControlFlow::<()>::Continue(())
        });
        found
    }

    pub(super) fn locks_on(&self, group: u32) -> impl Iterator<Item = u32> {
        let start = Some(self.groups[group].head);
        std::iter::successors(start, |at| {
            let next = self.entries[*at].next;
            (next != NONE).then_some(next)
        })
    }

    /// What excludes a request among the locks on one argument. Counts answer, so that a crowd of
    /// shared locks costs no more than one.
    pub(super) fn collision_in(
        &self,
        group: u32,
        asked: &Request,
        rules: Rules,
    ) -> Option<Refusal> {
        let held = &self.groups[group].held;
        for mode in Mode::ALL {
            let count = held[mode as usize];
            let (others, own) = (
                Mode::excludes(mode, asked.mode, rules),
                Mode::excludes_own(mode, asked.mode),
            );
            if count == 0 || !(others || own) {
                continue;
            }
            let owned = self.own(group, asked.owner, mode).is_some();
            if (own && owned) || (others && count > u32::from(owned)) {
                return Some(Refusal::Collision(self.holder(group, asked, mode)));
            }
        }
        None
    }

    fn holder(&self, group: u32, asked: &Request, mode: Mode) -> Option<Holder> {
        let own_excluded = Mode::excludes_own(mode, asked.mode);
        self.locks_on(group)
            .take(NAMED_WITHIN)
            .map(|at| &self.entries[at])
            .find(|it| it.mode == mode && (own_excluded || it.owner != asked.owner))
            .map(|it| Holder {
                owner: it.owner,
                mode: it.mode,
            })
    }
}

// Storing and forgetting.
impl Book {
    pub(super) fn add_table(&mut self, name: &[u8]) -> u32 {
        let at = self.tables.insert(Table {
            name: Text::new(name),
            groups: 0,
            families: Vec::new(),
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
            let family = stored.family_made(argument.len());
            family.add_generic(argument, at);
        } else if let Some(family) = stored.family_mut(argument.len()) {
            family.add_exact(at, table, &mut self.groups);
        }
        self.room.add_argument();
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
            self.join_crowd(at);
        }
        self.groups[group].held[mode as usize] += 1;
        self.lengthen_chain(owner, chain, at);
        at
    }

    /// Sets how often a lock is held, forgets it at zero, and tells the journal.
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
            self.leave_crowd(at);
        }
        let held = &mut self.groups[group].held;
        held[self.entries[at].mode as usize] -= 1;
        held[mode as usize] += 1;
        self.entries[at].mode = mode;
        if !is_head {
            self.join_crowd(at);
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
                self.leave_crowd(next);
            }
        } else {
            self.leave_crowd(at);
            self.entries[previous].next = next;
        }
        if next != NONE {
            self.entries[next].previous = previous;
        }
        self.groups[group].held[mode as usize] -= 1;
        self.shorten_chain(owner, at);
        self.entries.remove(at);
        self.room.give_back_lock();
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
        if let Some(family) = stored.family_mut(argument.len()) {
            if is_generic(argument) {
                family.remove_generic(argument, at);
            } else if group.in_trie {
                family.remove_exact(argument);
            }
        }
        self.index.remove(hash, at);
        self.groups.remove(at);
        self.room.remove_argument();
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

    fn join_crowd(&mut self, at: u32) {
        let (hasher, entries) = (&self.hasher, &self.entries);
        let key = |at: u32| {
            let entry = &entries[at];
            hasher.hash_one((entry.group, entry.owner, entry.mode))
        };
        self.crowd.insert_unique(key(at), at, |it| key(*it));
    }

    fn leave_crowd(&mut self, at: u32) {
        let entry = &self.entries[at];
        let hash = self.hash((entry.group, entry.owner, entry.mode));
        if let Ok(found) = self.crowd.find_entry(hash, |it| *it == at) {
            found.remove();
        }
    }

    fn lengthen_chain(&mut self, owner: OwnerId, head: u32, at: u32) {
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

    fn shorten_chain(&mut self, owner: OwnerId, at: u32) {
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
