//! The lock table against a model that is obviously right: a list of locks, looked through whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use concurve_server::locks::argument::overlap;
use concurve_server::locks::book::{Counts, Journal, Refusal, Request, Subject};
use concurve_server::locks::latched::{Latching, LockTable};
use concurve_server::locks::mode::{Mode, Rules, Scope};
use concurve_server::locks::room::Room;
use proptest::prelude::*;

const CAPACITY: usize = 24;

#[derive(Debug, Clone, PartialEq)]
struct Held {
    table: &'static str,
    argument: String,
    mode: Mode,
    owner: u32,
    dialog: u32,
    update: u32,
    backup: bool,
}

#[derive(Debug, Default)]
struct Model {
    rules: Rules,
    held: Vec<Held>,
    /// What a restart would bring back.
    kept: BTreeMap<Key, u32>,
}

type Key = (String, String, Mode, u32);

/// Grants, or says why not.
type Answer = Result<(u32, u32), &'static str>;

#[derive(Debug, Clone)]
struct Asked {
    table: &'static str,
    argument: String,
    mode: Mode,
    owner: u32,
    scope: Scope,
    backup: bool,
}

#[derive(Debug, Clone)]
enum Step {
    Lock(Asked),
    Unlock(Asked),
    Promote(Asked),
    ReleaseAll(u32, Scope),
}

impl Model {
    fn step(&mut self, step: &Step) -> Answer {
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

    fn listed(&self) -> Vec<(Key, u32, u32)> {
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

impl Asked {
    fn request(&self) -> Request<'_> {
        Request {
            subject: Subject {
                table: self.table.as_bytes(),
                argument: self.argument.as_bytes(),
            },
            mode: self.mode,
            owner: self.owner,
            scope: self.scope,
            backup: self.backup,
        }
    }
}

/// Replays what the lock table tells its journal.
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

fn asked() -> impl Strategy<Value = Asked> {
    let scope = prop_oneof![
        3 => Just(Scope::DIALOG),
        1 => Just(Scope::UPDATE),
        2 => Just(Scope::BOTH)
    ];
    // Few letters and lengths, so that arguments meet; long ones go to the heap.
    let argument = prop_oneof![
        6 => "[ab@]{3}",
        2 => "[ab]{1,2}",
        1 => "[ab@]".prop_map(|it| it.repeat(40)),
        1 => Just(String::new()),
    ];
    (
        prop_oneof![4 => Just("T"), 1 => Just("U")],
        argument,
        proptest::sample::select(&Mode::ALL[..]),
        0..4_u32,
        scope,
        any::<bool>(),
    )
        .prop_map(|(table, argument, mode, owner, scope, backup)| Asked {
            table,
            argument,
            mode,
            owner,
            scope,
            backup: backup && scope.update,
        })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => asked().prop_map(Step::Lock),
        4 => asked().prop_map(Step::Unlock),
        2 => asked().prop_map(Step::Promote),
        1 => (0..4_u32, 0..3_usize).prop_map(|(owner, scope)| {
            Step::ReleaseAll(owner, [Scope::DIALOG, Scope::UPDATE, Scope::BOTH][scope])
        }),
    ]
}

fn check(latching: Latching, blocks: bool, steps: &[Step]) {
    let rules = Rules {
        optimistic_blocks_exclusive: blocks,
    };
    let room = Arc::new(Room::new(CAPACITY as u64));
    let table = LockTable::new(latching, rules, Arc::clone(&room));
    let mut kept = Kept::default();
    let mut model = Model {
        rules,
        ..Model::default()
    };
    let mut peak = 0;
    for step in steps {
        let (expected, found) = (model.step(step), real_step(&table, step, &mut kept));
        assert_eq!(found, expected, "{step:?}");
        assert_eq!(real_listed(&table), model.listed(), "after {step:?}");
        assert_eq!(kept.0, model.kept, "after {step:?}");
        assert_eq!(room.locks().now() as usize, model.held.len());
        peak = peak.max(model.held.len());
    }
    // A promotion passes through no more locks than it leaves.
    assert_eq!(room.locks().peak() as usize, peak);
    for owner in 0..4 {
        table.release_all(owner, Scope::BOTH, &mut kept);
        assert!(!table.holds(owner));
    }
    assert!(kept.0.is_empty());
    assert_eq!((room.locks().now(), room.arguments().now()), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_latch_answers_as_the_model(
        blocks in any::<bool>(),
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        check(Latching::Global, blocks, &steps);
    }

    #[test]
    fn many_latches_answer_as_the_model(
        blocks in any::<bool>(),
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        check(Latching::Record, blocks, &steps);
    }
}
