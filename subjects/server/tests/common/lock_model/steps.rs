//! Random requests to the lock table.

use concurve_server::lock_table::mode::{Mode, Scope};
use concurve_server::lock_table::request::{Request, Subject};
use proptest::prelude::*;

/// Owners are numbered from 0.
pub const OWNERS: u32 = 4;

#[derive(Debug, Clone)]
pub struct Asked {
    pub table: &'static str,
    pub argument: String,
    pub mode: Mode,
    pub owner: u32,
    pub scope: Scope,
    pub backup: bool,
}

#[derive(Debug, Clone)]
pub enum Step {
    Lock(Asked),
    Unlock(Asked),
    Promote(Asked),
    ReleaseAll(u32, Scope),
}

impl Asked {
    pub fn request(&self) -> Request<'_> {
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

fn asked() -> impl Strategy<Value = Asked> {
    let scope = prop_oneof![
        3 => Just(Scope::DIALOG),
        1 => Just(Scope::UPDATE),
        2 => Just(Scope::BOTH)
    ];
    // Few letters and lengths, so that arguments overlap; long ones are stored on the heap.
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
        0..OWNERS,
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

pub fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => asked().prop_map(Step::Lock),
        4 => asked().prop_map(Step::Unlock),
        2 => asked().prop_map(Step::Promote),
        1 => (0..OWNERS, 0..3_usize).prop_map(|(owner, scope)| {
            Step::ReleaseAll(owner, [Scope::DIALOG, Scope::UPDATE, Scope::BOTH][scope])
        }),
    ]
}
