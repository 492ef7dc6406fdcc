//! Compares the lock table with a simple model.

mod model;
mod steps;

use std::collections::BTreeMap;
use std::sync::Arc;

use concurve_engines::Mode as Engines;
use concurve_server::lock_table::latched::{Latching, LockTable};
use concurve_server::lock_table::mode::{Mode, Rules, Scope};
use concurve_server::lock_table::request::{Counts, Journal, Refusal, Subject};
use concurve_server::lock_table::usage::TableUsage;

use crate::schedule::Compared;
use model::{Answer, CAPACITY, Key, Model};
use steps::OWNERS;
pub use steps::{Step, step};

/// Both, and the changes that the table wrote to its journal.
pub struct Beside {
    table: LockTable,
    usage: Arc<TableUsage>,
    kept: Kept,
    model: Model,
    peak: usize,
}

impl Beside {
    pub fn new(latching: Latching, optimistic_blocks_exclusive: bool) -> Self {
        let rules = Rules {
            optimistic_blocks_exclusive,
        };
        let usage = Arc::new(TableUsage::new(CAPACITY as u64));
        Self {
            table: LockTable::new(latching, rules, Arc::clone(&usage)),
            usage,
            kept: Kept::default(),
            model: Model {
                rules,
                ..Model::default()
            },
            peak: 0,
        }
    }
}

impl Compared for Beside {
    type Step = Step;

    /// Owners do not belong to engines: each step's engine may act for any owner.
    fn step(&mut self, _: u32, step: &Step) {
        let expected = self.model.step(step);
        let found = real_step(&self.table, step, &mut self.kept);
        assert_eq!(found, expected);
        assert_eq!(real_listed(&self.table), self.model.listed());
        assert_eq!(self.kept.0, self.model.kept);
        let held = self.model.held.len();
        assert_eq!(self.usage.locks().now() as usize, held);
        self.peak = self.peak.max(held);
    }

    /// The dialog parts of its own clients end; those of the update owner stay.
    fn engine_died(&mut self, engine: u32, _: Engines) {
        self.step(engine, &Step::ReleaseAll(engine, Scope::DIALOG));
    }

    fn end(mut self) {
        // A promotion passes through no more locks than it leaves.
        assert_eq!(self.usage.locks().peak() as usize, self.peak);
        for owner in 0..OWNERS {
            self.table.release_all(owner, Scope::BOTH, &mut self.kept);
            assert!(!self.table.holds(owner));
        }
        assert!(self.kept.0.is_empty());
        let left = (self.usage.locks().now(), self.usage.arguments().now());
        assert_eq!(left, (0, 0));
    }
}

/// Replays what the lock table writes to its journal.
#[derive(Default)]
struct Kept(BTreeMap<Key, u32>);

impl Journal for Kept {
    fn held(&mut self, subject: Subject, mode: Mode, owner: u32, count: u32) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let key = (text(subject.table), text(subject.argument), mode, owner);
        if count == 0 {
            self.0.remove(&key);
        } else {
            self.0.insert(key, count);
        }
    }
}

fn real_step(table: &LockTable, step: &Step, kept: &mut Kept) -> Answer {
    let counts = |it: Counts| (it.dialog, it.update);
    let answer = match step {
        Step::Lock(asked) => table.lock(&asked.request(), kept).map(counts),
        Step::Unlock(asked) => table.unlock(&asked.request(), kept).map(counts),
        Step::Promote(asked) => table.promote(&asked.request(), kept).map(|it| counts(it.0)),
        Step::ReleaseAll(owner, scope) => Ok((table.release_all(*owner, *scope, kept) as u32, 0)),
    };
    answer.map_err(|refusal| match refusal {
        Refusal::Collision(_) => "collision",
        Refusal::Full => "full",
        Refusal::NotHeld => "not held",
    })
}

fn real_listed(table: &LockTable) -> Vec<(Key, u32, u32)> {
    let mut listed = Vec::new();
    table.each(&mut |it| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let key = (
            text(it.subject.table),
            text(it.subject.argument),
            it.entry.mode,
            it.entry.owner,
        );
        listed.push((key, it.entry.dialog, it.entry.update));
    });
    listed.sort();
    listed
}
