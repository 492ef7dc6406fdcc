//! One lock: who holds it in which mode, and who comes next.

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::locks::{Owner, WaitCell};

/// How a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Shared = 1,
    Exclusive = 2,
}

/// The modes in which one owner holds a lock: who got it exclusive after shared has both.
#[derive(Debug, Clone, Copy)]
pub(super) struct Holder {
    pub owner: Owner,
    pub modes: u8,
}

#[derive(Debug)]
pub(super) struct Waiter {
    pub owner: Owner,
    pub mode: Mode,
    pub cell: Arc<WaitCell>,
}

#[derive(Debug, Default)]
pub(super) struct Lock {
    pub holders: SmallVec<[Holder; 2]>,
    pub queue: VecDeque<Waiter>,
}

/// What asking for a lock without waiting gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// The owner did not hold it, and does now.
    New,
    /// The owner held it already, maybe in a lesser mode.
    Held,
    /// Not now.
    Busy,
}

impl Holder {
    pub fn has(&self, mode: Mode) -> bool {
        self.modes & mode as u8 != 0
    }

    /// Whether another owner cannot have the lock in this mode.
    pub fn excludes(&self, mode: Mode) -> bool {
        mode == Mode::Exclusive || self.has(Mode::Exclusive)
    }
}

impl Lock {
    pub fn ask(&mut self, owner: Owner, mode: Mode) -> Asked {
        let own = self.holders.iter().find(|it| it.owner == owner);
        let held = own.is_some();
        if own.is_some_and(|it| it.has(mode)) {
            return Asked::Held;
        }
        // Who holds it exclusive may also say that he reads it.
        let is_first = held || self.queue.is_empty();
        if !is_first || !self.allows(owner, mode) {
            return Asked::Busy;
        }
        self.grant(owner, mode);
        if held { Asked::Held } else { Asked::New }
    }

    pub fn allows(&self, owner: Owner, mode: Mode) -> bool {
        let others = self.holders.iter().filter(|it| it.owner != owner);
        !others.into_iter().any(|it| it.excludes(mode))
    }

    pub fn grant(&mut self, owner: Owner, mode: Mode) {
        let modes = mode as u8;
        match self.holders.iter_mut().find(|it| it.owner == owner) {
            Some(own) => own.modes |= modes,
            None => self.holders.push(Holder { owner, modes }),
        }
    }

    pub fn is_unused(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty()
    }

    pub fn holds(&self, owner: Owner) -> bool {
        self.holders.iter().any(|it| it.owner == owner)
    }
}
