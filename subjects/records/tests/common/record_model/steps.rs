//! Random operations.

use concurve_records::{LockBias, TransactionKind};
use proptest::prelude::*;

/// The values of the keys, and another byte.
pub type Record = [u8; 3];

#[derive(Debug, Clone)]
pub enum Step {
    Begin(TransactionKind),
    End,
    Abort,
    Unlock,
    Insert(Record),
    Update(Record),
    Delete,
    Get(Read, LockBias),
    /// Without a visible effect.
    Checkpoint,
}

#[derive(Debug, Clone, Copy)]
pub enum Read {
    Equal(usize, u8),
    Next,
    Previous,
    Greater(usize, u8),
    AtLeast(usize, u8),
    Less(usize, u8),
    AtMost(usize, u8),
    First(usize),
    Last(usize),
}

fn value() -> impl Strategy<Value = u8> {
    0..24_u8
}

fn read() -> impl Strategy<Value = Read> {
    let key = || 0..2_usize;
    prop_oneof![
        4 => (key(), value()).prop_map(|(key, value)| Read::Equal(key, value)),
        3 => Just(Read::Next),
        2 => Just(Read::Previous),
        1 => (key(), value()).prop_map(|(key, value)| Read::Greater(key, value)),
        1 => (key(), value()).prop_map(|(key, value)| Read::AtLeast(key, value)),
        1 => (key(), value()).prop_map(|(key, value)| Read::Less(key, value)),
        1 => (key(), value()).prop_map(|(key, value)| Read::AtMost(key, value)),
        1 => key().prop_map(Read::First),
        1 => key().prop_map(Read::Last),
    ]
}

fn bias() -> impl Strategy<Value = LockBias> {
    prop_oneof![
        6 => Just(LockBias::None),
        1 => Just(LockBias::SingleWait),
        1 => Just(LockBias::MultipleNoWait),
    ]
}

pub fn step() -> impl Strategy<Value = Step> {
    let record = || (value(), 0..5_u8, 0..3_u8).prop_map(|(a, b, c)| [a, b, c]);
    prop_oneof![
        4 => prop_oneof![
            5 => Just(TransactionKind::Concurrent),
            1 => Just(TransactionKind::Exclusive),
        ]
        .prop_map(Step::Begin),
        3 => Just(Step::End),
        2 => Just(Step::Abort),
        1 => Just(Step::Unlock),
        8 => record().prop_map(Step::Insert),
        5 => record().prop_map(Step::Update),
        3 => Just(Step::Delete),
        1 => Just(Step::Checkpoint),
        12 => (read(), bias()).prop_map(|(read, bias)| Step::Get(read, bias)),
    ]
}
