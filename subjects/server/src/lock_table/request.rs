//! Requests to the lock table, its answers, and the journal that records its changes.

use crate::lock_table::entry::{Entry, OwnerId};
use crate::lock_table::mode::{Mode, Scope};

/// What is locked.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    pub table: &'a [u8],
    pub argument: &'a [u8],
}

/// A request for a lock.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub subject: Subject<'a>,
    pub mode: Mode,
    pub owner: OwnerId,
    pub scope: Scope,
    /// The update part must survive a crash.
    pub backup: bool,
}

/// How often a lock is held now, by each part of its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub dialog: u32,
    pub update: u32,
}

impl Counts {
    pub const NONE: Counts = Counts {
        dialog: 0,
        update: 0,
    };
}

/// Why a lock was not granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Another lock excludes it; names one such lock, if it was found quickly.
    Collision(Option<Holder>),
    /// The table holds as many locks as its capacity.
    Full,
    /// The owner holds no such lock.
    NotHeld,
}

/// A lock that excludes a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    pub owner: OwnerId,
    pub mode: Mode,
}

/// Receives each change of a lock that must survive a crash.
pub trait Journal {
    /// The update part of `owner` now holds the lock `count` times; 0: no longer.
    fn held(&mut self, subject: Subject, mode: Mode, owner: OwnerId, count: u32);
}

impl Journal for () {
    fn held(&mut self, _: Subject, _: Mode, _: OwnerId, _: u32) {}
}

/// A lock as the list shows it.
#[derive(Debug, Clone, Copy)]
pub struct Listed<'a> {
    pub subject: Subject<'a>,
    pub entry: &'a Entry,
}
