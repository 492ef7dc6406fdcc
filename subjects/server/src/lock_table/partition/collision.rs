//! Which locks exclude a request.

use std::ops::ControlFlow;

use super::Partition;
use crate::lock_table::argument::{is_generic, overlap};
use crate::lock_table::mode::{Mode, Rules};
use crate::lock_table::request::{Holder, Refusal, Request, Subject};

/// Number of locks of a chain that are examined to name one that excludes a request.
const NAMED_WITHIN: usize = 64;

impl Partition {
    /// Updates the index that [`Partition::collision`] needs for a generic request: a trie of the
    /// exact arguments, which the first such request for a table and a length creates.
    pub fn prepare(&mut self, subject: Subject) {
        let length = subject.argument.len();
        if !is_generic(subject.argument) {
            return;
        }
        let Some(table) = self.table(subject.table) else {
            return;
        };
        let made = self.tables[table]
            .length_index_made(length)
            .prepare(table, &mut self.groups);
        self.tries_made += u64::from(made);
    }

    /// The refusal of a request that a lock excludes. Generic requests: after
    /// [`Partition::prepare`].
    pub fn collision(&self, asked: &Request) -> Option<Refusal> {
        self.collision_under(asked, self.rules)
    }

    /// The refusal of a promotion from O to E: another owner has a lock that is not optimistic.
    pub fn promotion_collision(&self, asked: &Request) -> Option<Refusal> {
        let rules = Rules {
            optimistic_blocks_exclusive: false,
        };
        let mode = Mode::Exclusive;
        self.collision_under(&Request { mode, ..*asked }, rules)
    }

    fn collision_under(&self, asked: &Request, rules: Rules) -> Option<Refusal> {
        let table = self.table(asked.subject.table)?;
        let argument = asked.subject.argument;
        let identical = self.group(table, argument);
        if let Some(group) = identical
            && let Some(refusal) = self.collision_in(group, asked, rules)
        {
            return Some(refusal);
        }
        let length_index = self.tables[table].length_index(argument.len())?;
        let mut visit = |at| match self.collision_in(at, asked, rules) {
            Some(refusal) if overlap(self.groups[at].argument.as_bytes(), argument) => {
                ControlFlow::Break(refusal)
            }
            _ => ControlFlow::Continue(()),
        };
        length_index.overlapping(argument, &mut visit).break_value()
    }

    /// The arguments with locks that overlap. Generic requests: after [`Partition::prepare`].
    pub(super) fn overlapping(&self, subject: Subject) -> Vec<u32> {
        let mut found = Vec::new();
        let Some(table) = self.table(subject.table) else {
            return found;
        };
        if !is_generic(subject.argument) {
            found.extend(self.group(table, subject.argument));
        }
        let Some(length_index) = self.tables[table].length_index(subject.argument.len()) else {
            return found;
        };
        let _ = length_index.overlapping(subject.argument, &mut |group| {
            if overlap(self.groups[group].argument.as_bytes(), subject.argument) {
                found.push(group);
            }
            ControlFlow::<()>::Continue(())
        });
        found
    }

    /// Whether a lock on one argument excludes a request. Only counts are compared, so that many
    /// shared locks cost no more than one.
    fn collision_in(&self, group: u32, asked: &Request, rules: Rules) -> Option<Refusal> {
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
