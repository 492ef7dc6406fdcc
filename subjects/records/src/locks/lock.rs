//! One lock: its holders and their modes, and its queue.

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::locks::wait_cell::WaitCell;

/// The number of the session that holds a lock.
pub type Owner = u32;

/// How a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Shared = 1,
    Exclusive = 2,
}

/// The modes in which one owner holds a lock. An owner that took it shared first and exclusive
/// later has both.
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

/// The result of trying to take a lock without waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockOutcome {
    /// The owner did not hold it, and does now.
    New,
    /// The owner held it already, possibly in a lesser mode.
    Held,
    /// Other owners hold it or wait for it.
    Busy,
}

impl Holder {
    pub fn has(&self, mode: Mode) -> bool {
        self.modes & mode as u8 != 0
    }

    /// Whether this holder excludes another owner in this mode.
    pub fn excludes(&self, mode: Mode) -> bool {
        mode == Mode::Exclusive || self.has(Mode::Exclusive)
    }
}

impl Lock {
    pub fn try_lock(&mut self, owner: Owner, mode: Mode) -> LockOutcome {
        let own = self.holders.iter().find(|it| it.owner == owner);
        let held = own.is_some();
        if own.is_some_and(|it| it.has(mode)) {
            return LockOutcome::Held;
        }
        // A holder may add a mode although others wait: it precedes them.
        let is_first = held || self.queue.is_empty();
        if !is_first || !self.allows(owner, mode) {
            return LockOutcome::Busy;
        }
        self.grant(owner, mode);
        if held {
            LockOutcome::Held
        } else {
            LockOutcome::New
        }
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

    /// Adds a waiter to the queue; whether it holds the lock already, in another mode. Then it comes before
    /// all that do not: they could not be served before it.
    pub fn queue_up(&mut self, waiter: Waiter) -> bool {
        let held = self.holds(waiter.owner);
        let conversions = self.queue.iter().take_while(|it| self.holds(it.owner));
        let at = if held {
            conversions.count()
        } else {
            self.queue.len()
        };
        self.queue.insert(at, waiter);
        held
    }

    /// Whether an owner holds it exclusively.
    pub fn is_exclusive(&self) -> bool {
        self.holders.iter().any(|it| it.has(Mode::Exclusive))
    }

    pub fn is_unused(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty()
    }

    fn holds(&self, owner: Owner) -> bool {
        self.holders.iter().any(|it| it.owner == owner)
    }
}
