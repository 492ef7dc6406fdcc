//! Waiting: for a lock, asleep or parked, and for the log to be on the disk.

use std::time::{Duration, Instant};

use crate::locks::{Asked, LOOK, LockName, Mode, Queued, next_look};
use crate::session::statement::in_use;
use crate::session::{Session, Waiting};
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

impl Session {
    /// Waits for a lock in the session's way.
    pub(super) fn wait(&mut self, wanted: Wanted) -> Result<(), Status> {
        let (owner, cell) = (self.state.place.number, &self.state.cell);
        let locks = &self.shared.locks;
        let asked = match &self.state.waiting {
            Waiting::Refuses => return Err(in_use(wanted.name)),
            Waiting::Sleeps => {
                self.state.place.counts.lock_waits.add(1);
                if std::mem::take(&mut self.state.is_at_work) {
                    self.shared.gate.leave_to_sleep();
                }
                let asked = locks.wait(owner, wanted.name, wanted.mode, cell);
                asked.inspect_err(|_| self.state.place.counts.deadlocks.add(1))?
            }
            Waiting::Parks(_) => match locks.queue_up(owner, wanted.name, wanted.mode, cell) {
                Queued::Granted(asked) => asked,
                Queued::Waits(granted) => {
                    self.state.place.counts.lock_waits.add(1);
                    self.state.parked = Some(Parked {
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
            (Asked::New, true) => self.state.transaction.locks.push(wanted.name),
            (Asked::New, false) => {
                let owner = self.state.place.number;
                self.shared.locks.release(owner, wanted.name);
            }
            _ => {}
        }
    }

    /// Goes on with the lock that the session is parked for.
    ///
    /// # Errors
    /// [`Status::Waiting`] if it is not granted yet, [`Status::Deadlock`] if it never will be.
    pub(super) fn resume(&mut self) -> Result<(), Status> {
        let Some(parked) = self.state.parked else {
            return Ok(());
        };
        if self.state.cell.is_granted() {
            self.state.parked = None;
            self.keep(parked.granted, parked.wanted);
            return Ok(());
        }
        if parked.looked.elapsed() >= parked.look {
            let owner = self.state.place.number;
            if self.shared.locks.give_up_in_ring(owner, parked.wanted.name) {
                self.state.parked = None;
                self.state.place.counts.deadlocks.add(1);
                return Err(Status::Deadlock);
            }
            self.state.parked = Some(Parked {
                looked: Instant::now(),
                look: next_look(parked.look),
                ..parked
            });
        }
        Err(Status::Waiting)
    }

    /// Gives up what the session is parked for.
    pub(super) fn leave_queue(&mut self) {
        if let Some(parked) = self.state.parked.take() {
            let owner = self.state.place.number;
            self.shared.locks.give_up(owner, parked.wanted.name);
        }
    }

    /// How often it had to wait for a lock so far.
    pub fn lock_waits(&self) -> u64 {
        self.state.place.counts.lock_waits.now()
    }

    /// Whether the last operation committed something that is not promised yet.
    pub fn is_unconfirmed(&self) -> bool {
        self.state.unconfirmed.is_some()
    }

    /// Makes what the session committed as durable as the engine makes it, for sessions that park:
    /// who confirms the first of several forces the log for all that committed before. Their locks
    /// are given back then; an operation that comes earlier confirms first.
    ///
    /// # Errors
    /// If the log could not be written, it is not known whether it is done: the next start says.
    pub fn confirm(&mut self) -> Result<(), Status> {
        match self.state.unconfirmed.take() {
            Some(lsn) => self.finish_commit(lsn),
            None => Ok(()),
        }
    }
}
