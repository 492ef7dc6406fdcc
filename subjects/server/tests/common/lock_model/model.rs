//! The model: a list of locks that is searched completely.

use std::collections::BTreeMap;

use concurve_server::lock_table::argument::overlap;
use concurve_server::lock_table::mode::{Mode, Rules, Scope};

use super::steps::{Asked, Step};

pub const CAPACITY: usize = 24;

#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    pub table: &'static str,
    pub argument: String,
    pub mode: Mode,
    pub owner: u32,
    pub dialog: u32,
    pub update: u32,
    pub backup: bool,
}

#[derive(Debug, Default)]
pub struct Model {
    pub rules: Rules,
    pub held: Vec<Held>,
    /// The locks that a restart would restore.
    pub kept: BTreeMap<Key, u32>,
}

pub type Key = (String, String, Mode, u32);

/// The counts that were granted, or the reason of the refusal.
pub type Answer = Result<(u32, u32), &'static str>;

impl Model {
    pub fn step(&mut self, step: &Step) -> Answer {
        let answer = match step {
            Step::Lock(asked) => self.lock(asked),
            Step::Unlock(asked) => self.unlock(asked),
            Step::Promote(asked) => self.promote(asked),
            Step::ReleaseAll(owner, scope) => Ok((self.release_all(*owner, *scope), 0)),
        };
        self.held.retain(|it| it.dialog + it.update > 0);
        let backed = self.held.iter().filter(|it| it.backup && it.update > 0);
        self.kept = backed.map(|it| (it.key(), it.update)).collect();
        answer
    }

    fn overlapping(&self, asked: &Asked) -> impl Iterator<Item = &Held> {
        self.held.iter().filter(|it| {
            it.table == asked.table && overlap(it.argument.as_bytes(), asked.argument.as_bytes())
        })
    }

    fn own(&mut self, asked: &Asked, mode: Mode) -> Option<&mut Held> {
        self.held.iter_mut().find(|it| {
            (it.table, &it.argument, it.mode, it.owner)
                == (asked.table, &asked.argument, mode, asked.owner)
        })
    }

    fn lock(&mut self, asked: &Asked) -> Answer {
        use Mode::{Exclusive, Optimistic, Shared, Sole};
        let blocks = self.rules.optimistic_blocks_exclusive;
        let collides = self.overlapping(asked).any(|it| {
            if it.owner == asked.owner {
                return it.mode == Sole && asked.mode == Sole;
            }
            match (it.mode, asked.mode) {
                (Shared, Shared | Optimistic) | (Optimistic, Shared | Optimistic) => false,
                (Optimistic, Exclusive | Sole) => blocks,
                _ => true,
            }
        });
        if collides {
            return Err("collision");
        }
        if self.own(asked, asked.mode).is_none() {
            if self.held.len() == CAPACITY {
                return Err("full");
            }
            self.held.push(Held {
                table: asked.table,
                argument: asked.argument.clone(),
                mode: asked.mode,
                owner: asked.owner,
                dialog: 0,
                update: 0,
                backup: false,
            });
        }
        let own = self.own(asked, asked.mode).expect("just made");
        own.dialog += u32::from(asked.scope.dialog);
        own.update += u32::from(asked.scope.update);
        own.backup |= asked.backup;
        Ok((own.dialog, own.update))
    }

    fn unlock(&mut self, asked: &Asked) -> Answer {
        let own = self.own(asked, asked.mode).ok_or("not held")?;
        let before = (own.dialog, own.update);
        if asked.scope.dialog {
            own.dialog = own.dialog.saturating_sub(1);
        }
        if asked.scope.update {
            own.update = own.update.saturating_sub(1);
        }
        let after = (own.dialog, own.update);
        if after == before {
            return Err("not held");
        }
        Ok(after)
    }

    fn promote(&mut self, asked: &Asked) -> Answer {
        let collides = self
            .overlapping(asked)
            .any(|it| it.owner != asked.owner && it.mode != Mode::Optimistic);
        let own = self.own(asked, Mode::Optimistic).ok_or("not held")?.clone();
        if collides {
            return Err("collision");
        }
        self.held.retain(|it| *it != own);
        match self.own(asked, Mode::Exclusive) {
            Some(exclusive) => {
                exclusive.dialog += own.dialog;
                exclusive.update += own.update;
                exclusive.backup |= own.backup;
            }
            None => self.held.push(Held {
                mode: Mode::Exclusive,
                ..own
            }),
        }
        self.held.retain(|it| {
            it.owner == asked.owner
                || it.mode != Mode::Optimistic
                || it.table != asked.table
                || !overlap(it.argument.as_bytes(), asked.argument.as_bytes())
        });
        let own = self.own(asked, Mode::Exclusive).expect("just made");
        Ok((own.dialog, own.update))
    }

    fn release_all(&mut self, owner: u32, scope: Scope) -> u32 {
        let mut freed = 0;
        for it in self.held.iter_mut().filter(|it| it.owner == owner) {
            it.dialog = if scope.dialog { 0 } else { it.dialog };
            it.update = if scope.update { 0 } else { it.update };
            freed += u32::from(it.dialog + it.update == 0);
        }
        freed
    }

    pub fn listed(&self) -> Vec<(Key, u32, u32)> {
        let mut listed: Vec<_> = self
            .held
            .iter()
            .map(|it| (it.key(), it.dialog, it.update))
            .collect();
        listed.sort();
        listed
    }
}

impl Held {
    fn key(&self) -> Key {
        (
            self.table.into(),
            self.argument.clone(),
            self.mode,
            self.owner,
        )
    }
}
