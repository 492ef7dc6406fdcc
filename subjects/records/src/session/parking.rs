//! Waiting: for a lock, asleep or parked, and for the log to be on the disk.

use std::time::{Duration, Instant};

use crate::locks::{Asked, LOOK, LockName, Mode, Queued, WaitCell, next_look};
use crate::session::active::Active;
use crate::session::statement::in_use;
use crate::session::{Own, Session, Waiting};
use crate::status::Status;

/// A lock that an operation met.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub name: LockName,
    pub mode: Mode,
    /// Keep it until the transaction ends; otherwise it is enough that it was free.
    pub keep: bool,
}

/// A place in the queue for a lock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parked {
    wanted: Wanted,
    /// What it will be to the session.
    granted: Asked,
    looked: Instant,
    /// It looks for deadlocks so long after that.
    look: Duration,
}

impl Active<'_> {
    /// Waits for a lock in the session's way.
    pub(super) fn wait(&mut self, own: &Own, wanted: Wanted) -> Result<(), Status> {
        let (owner, cell) = (self.place.number, &own.cell);
        let locks = &self.shared.locks;
        let asked = match &own.waiting {
            Waiting::Refuses => return Err(in_use(wanted.name)),
            Waiting::Sleeps => {
                self.place.counts.lock_waits.add(1);
                if std::mem::take(&mut self.held.is_at_work) {
                    self.shared.gate.leave_to_sleep();
                }
                let asked = locks.wait(owner, wanted.name, wanted.mode, cell);
                asked.inspect_err(|_| self.place.counts.deadlocks.add(1))?
            }
            Waiting::Parks(_) => match locks.queue_up(owner, wanted.name, wanted.mode, cell) {
                Queued::Granted(asked) => asked,
                Queued::Waits(granted) => {
                    self.place.counts.lock_waits.add(1);
                    self.held.parked = Some(Parked {
                        wanted,
                        granted,
                        looked: Instant::now(),
                        look: LOOK,
                    });
                    return Err(Status::Waiting);
                }
            },
        };
        self.keep(asked, wanted);
        Ok(())
    }

    fn keep(&mut self, asked: Asked, wanted: Wanted) {
        match (asked, wanted.keep) {
            (Asked::New, true) => self.held.transaction.locks.push(wanted.name),
            (Asked::New, false) => {
                let owner = self.place.number;
                self.shared.locks.release(owner, wanted.name);
            }
            _ => {}
        }
    }

    /// Goes on with the lock that the session is parked for.
    ///
    /// # Errors
    /// [`Status::Waiting`] if it is not granted yet, [`Status::Deadlock`] if it never will be.
    pub(super) fn resume(&mut self, cell: &WaitCell) -> Result<(), Status> {
        let Some(parked) = self.held.parked else {
            return Ok(());
        };
        if cell.is_granted() {
            self.held.parked = None;
            self.keep(parked.granted, parked.wanted);
            return Ok(());
        }
        if parked.looked.elapsed() >= parked.look {
            let owner = self.place.number;
            if self.shared.locks.give_up_in_ring(owner, parked.wanted.name) {
                self.held.parked = None;
                self.place.counts.deadlocks.add(1);
                return Err(Status::Deadlock);
            }
            self.held.parked = Some(Parked {
                looked: Instant::now(),
                look: next_look(parked.look),
                ..parked
            });
        }
        Err(Status::Waiting)
    }

    /// Gives up what the session is parked for.
    pub(super) fn leave_queue(&mut self) {
        if let Some(parked) = self.held.parked.take() {
            let owner = self.place.number;
            self.shared.locks.give_up(owner, parked.wanted.name);
        }
    }

    /// Makes durable what the session committed; see [`Session::confirm`].
    pub(super) fn confirm(&mut self) -> Result<(), Status> {
        match self.held.unconfirmed.take() {
            Some(lsn) => self.finish_commit(lsn),
            None => Ok(()),
        }
    }
}

impl Session {
    /// How often it had to wait for a lock so far.
    pub fn lock_waits(&self) -> u64 {
        self.place.counts.lock_waits.now()
    }

    /// Whether the last operation committed something that is not promised yet.
    pub fn is_unconfirmed(&self) -> bool {
        self.own.parks() && self.active().held.unconfirmed.is_some()
    }

    /// Makes what the session committed as durable as the engine makes it, for sessions that park:
    /// who confirms the first of several forces the log for all that committed before. Their locks
    /// are given back then; an operation that comes earlier confirms first.
    ///
    /// # Errors
    /// If the log could not be written, it is not known whether it is done: the next start says.
    pub fn confirm(&mut self) -> Result<(), Status> {
        self.active().confirm()
    }
}
