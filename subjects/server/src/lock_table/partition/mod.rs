//! A part of the lock table, or all of it: which locks are held, and which may be granted. Pure: no
//! clock, no threads, no files.
//!
//! An exact argument is found by its hash, and so are the generic arguments that overlap with an
//! exact request (`lock_table::patterns`). The arguments that overlap with a generic request are found
//! in a trie. The locks of an argument and the locks of an owner are chained through the entries.

mod collision;
mod find;
mod length_index;
mod store;

use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::lock_table::argument::Text;
use crate::lock_table::entry::{Entries, Groups, OwnerId};
use crate::lock_table::index::Index;
use crate::lock_table::mode::{Mode, Rules, Scope};
use crate::lock_table::request::{Counts, Journal, Refusal, Request};
use crate::lock_table::usage::TableUsage;
use crate::slab::{NONE, Slab};
use length_index::LengthIndex;

#[derive(Debug)]
pub struct Partition {
    rules: Rules,
    usage: Arc<TableUsage>,
    groups: Groups,
    entries: Entries,
    tables: Slab<Table>,
    /// Tables by name.
    names: HashTable<u32>,
    /// Groups by table and argument.
    index: Index,
    /// Every lock but the first of its argument, by argument, owner and mode.
    further_locks: HashTable<u32>,
    /// Owners with a lock: their chain of entries.
    chains: HashTable<Chain>,
    /// Tries of exact arguments made so far; each took a pass over the locks.
    pub tries_made: u64,
    hasher: DefaultHashBuilder,
}

#[derive(Debug)]
struct Table {
    name: Text,
    /// Its arguments that have locks.
    groups: u32,
    length_indexes: Vec<LengthIndex>,
}

impl Table {
    fn length_index(&self, length: usize) -> Option<&LengthIndex> {
        self.length_indexes.iter().find(|it| it.length == length)
    }

    fn length_index_mut(&mut self, length: usize) -> Option<&mut LengthIndex> {
        self.length_indexes
            .iter_mut()
            .find(|it| it.length == length)
    }

    fn length_index_made(&mut self, length: usize) -> &mut LengthIndex {
        let at = self
            .length_indexes
            .iter()
            .position(|it| it.length == length);
        let at = at.unwrap_or_else(|| {
            self.length_indexes.push(LengthIndex::new(length));
            self.length_indexes.len() - 1
        });
        &mut self.length_indexes[at]
    }
}

#[derive(Debug)]
struct Chain {
    owner: OwnerId,
    head: u32,
    length: u32,
}

impl Partition {
    pub fn new(rules: Rules, usage: Arc<TableUsage>) -> Self {
        Self {
            rules,
            usage,
            groups: Groups::default(),
            entries: Entries::default(),
            tables: Slab::default(),
            names: HashTable::new(),
            index: Index::default(),
            further_locks: HashTable::new(),
            chains: HashTable::new(),
            tries_made: 0,
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// Grants or refuses a lock at once.
    pub fn lock(&mut self, asked: &Request, journal: &mut dyn Journal) -> Result<Counts, Refusal> {
        self.prepare(asked.subject);
        match self.collision(asked) {
            Some(collision) => Err(collision),
            None => self.grant(asked, journal),
        }
    }

    /// Grants a request that no other lock excludes, if the table has capacity left.
    pub fn grant(&mut self, asked: &Request, journal: &mut dyn Journal) -> Result<Counts, Refusal> {
        let table = self.table(asked.subject.table);
        let group = table.and_then(|table| self.group(table, asked.subject.argument));
        let own = group.and_then(|group| self.own(group, asked.owner, asked.mode));
        let at = match own {
            Some(at) => at,
            None => {
                if !self.usage.reserve_lock() {
                    return Err(Refusal::Full);
                }
                let table = table.unwrap_or_else(|| self.add_table(asked.subject.table));
                let group = group.unwrap_or_else(|| self.add_group(table, asked.subject.argument));
                self.add_entry(group, asked.owner, asked.mode)
            }
        };
        let entry = &mut self.entries[at];
        entry.dialog += u32::from(asked.scope.dialog);
        entry.update += u32::from(asked.scope.update);
        entry.backup |= asked.backup;
        let (counts, backup) = (entry.counts(), entry.backup);
        if backup && asked.scope.update {
            journal.held(asked.subject, asked.mode, asked.owner, counts.update);
        }
        Ok(counts)
    }

    /// Ends one hold of a lock, for the parts in `scope` that have one.
    pub fn unlock(
        &mut self,
        asked: &Request,
        journal: &mut dyn Journal,
    ) -> Result<Counts, Refusal> {
        let at = self.own_lock(asked).ok_or(Refusal::NotHeld)?;
        let Counts { dialog, update } = self.entries[at].counts();
        let lower = |count: u32, in_scope: bool| count - u32::from(in_scope && count > 0);
        let left = Counts {
            dialog: lower(dialog, asked.scope.dialog),
            update: lower(update, asked.scope.update),
        };
        if left == (Counts { dialog, update }) {
            return Err(Refusal::NotHeld);
        }
        self.set_counts(at, left, journal);
        Ok(left)
    }

    /// Ends all holds of the parts in `scope` of an owner; returns how many locks that freed.
    pub fn release_all(&mut self, owner: OwnerId, scope: Scope, journal: &mut dyn Journal) -> u64 {
        let mut freed = 0;
        let mut at = self.chain(owner).map_or(NONE, |chain| chain.head);
        while at != NONE {
            let entry = &self.entries[at];
            let next = entry.owner_next;
            let left = Counts {
                dialog: if scope.dialog { 0 } else { entry.dialog },
                update: if scope.update { 0 } else { entry.update },
            };
            freed += u64::from(left.dialog + left.update == 0);
            if left != entry.counts() {
                self.set_counts(at, left, journal);
            }
            at = next;
        }
        freed
    }

    /// Whether the owner has an O on exactly this.
    pub fn has_optimistic(&self, asked: &Request) -> bool {
        let mode = Mode::Optimistic;
        self.own_lock(&Request { mode, ..*asked }).is_some()
    }

    /// Makes the owner's O an E, with its counts. To be called if nothing excludes it
    /// ([`Partition::promotion_collision`]); afterwards the caller must end the O of other owners
    /// on all arguments that overlap ([`Partition::end_optimistic`]).
    pub fn promote(
        &mut self,
        asked: &Request,
        journal: &mut dyn Journal,
    ) -> Result<Counts, Refusal> {
        let of_mode = |mode| Request { mode, ..*asked };
        let optimistic = self.own_lock(&of_mode(Mode::Optimistic));
        let from = optimistic.ok_or(Refusal::NotHeld)?;
        let (counts, backup) = (self.entries[from].counts(), self.entries[from].backup);
        let into = match self.own_lock(&of_mode(Mode::Exclusive)) {
            Some(into) => {
                self.set_counts(from, Counts::NONE, journal);
                let entry = &mut self.entries[into];
                entry.dialog += counts.dialog;
                entry.update += counts.update;
                entry.backup |= backup;
                into
            }
            None => {
                if backup && counts.update > 0 {
                    journal.held(asked.subject, Mode::Optimistic, asked.owner, 0);
                }
                self.change_mode(from, Mode::Exclusive);
                from
            }
        };
        let entry = &self.entries[into];
        if entry.backup && entry.update > 0 {
            journal.held(asked.subject, Mode::Exclusive, asked.owner, entry.update);
        }
        Ok(entry.counts())
    }

    /// Ends the O of other owners on all arguments that overlap; returns how many it ended.
    pub fn end_optimistic(&mut self, asked: &Request, journal: &mut dyn Journal) -> u64 {
        let ended: Vec<u32> = self
            .overlapping(asked.subject)
            .into_iter()
            .filter(|group| self.groups[*group].held[Mode::Optimistic as usize] > 0)
            .flat_map(|group| self.locks_on(group))
            .filter(|at| {
                let entry = &self.entries[*at];
                entry.mode == Mode::Optimistic && entry.owner != asked.owner
            })
            .collect();
        for at in &ended {
            self.set_counts(*at, Counts::NONE, journal);
        }
        ended.len() as u64
    }
}
