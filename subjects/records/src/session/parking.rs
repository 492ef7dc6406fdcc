//! Waiting: for a lock, asleep or parked, and for the log to be on the disk.

use crate::held::{Parked, Wanted};
use crate::locks::{CHECK_INTERVAL, LockOutcome, Queued, WaitCell, next_interval};
use crate::session::active::Active;
use crate::session::{LocalState, Session, Waiting};
use crate::status::Status;

impl Active<'_> {
    /// Waits for a lock in the way that is set for the session.
    pub(super) fn wait(&mut self, local: &LocalState, wanted: Wanted) -> Result<(), Status> {
        let (owner, cell) = (self.registration.number, &local.cell);
        let locks = &self.shared.locks;
        let outcome = match &local.waiting {
            Waiting::Refuses => return Err(wanted.name.in_use()),
            Waiting::Sleeps => {
                self.registration.counts.lock_waits.add(1);
                let (name, mode, looks) = (wanted.name, wanted.mode, self.shared.lock_looks);
                match locks.try_for_a_while(owner, name, mode, looks) {
                    LockOutcome::Busy => {
                        self.shared.admission.give_up(&self.registration.slot);
                        let outcome = locks.wait(owner, name, mode, cell);
                        outcome.inspect_err(|_| self.registration.counts.deadlocks.add(1))?
                    }
                    outcome => outcome,
                }
            }
            Waiting::Parks(_) => match locks.queue_up(owner, wanted.name, wanted.mode, cell) {
                Queued::Granted(outcome) => outcome,
                Queued::Waits(granted) => {
                    self.registration.counts.lock_waits.add(1);
                    self.held.parked = Some(Parked {
                        wanted,
                        granted,
                        checked: self.shared.storage.now(),
                        interval: CHECK_INTERVAL,
                    });
                    return Err(Status::Waiting);
                }
            },
        };
        self.keep(outcome, wanted);
        Ok(())
    }

    fn keep(&mut self, outcome: LockOutcome, wanted: Wanted) {
        match (outcome, wanted.keep) {
            (outcome, true) => self
                .held
                .transaction
                .keep(outcome, wanted.name, wanted.mode),
            (LockOutcome::New, false) => {
                let owner = self.registration.number;
                self.shared.locks.release(owner, wanted.name);
            }
            _ => {}
        }
    }

    /// Takes the lock that the session is parked for.
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
        let now = self.shared.storage.now();
        if now.saturating_sub(parked.checked) >= parked.interval {
            let owner = self.registration.number;
            if self
                .shared
                .locks
                .give_up_if_deadlocked(owner, parked.wanted.name)
            {
                self.held.parked = None;
                self.registration.counts.deadlocks.add(1);
                return Err(Status::Deadlock);
            }
            self.held.parked = Some(Parked {
                checked: now,
                interval: next_interval(parked.interval),
                ..parked
            });
        }
        Err(Status::Waiting)
    }

    /// Leaves the queue of the lock that the session is parked for.
    pub(super) fn leave_queue(&mut self) {
        if let Some(parked) = self.held.parked.take() {
            let owner = self.registration.number;
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
    /// How often the session has waited for a lock.
    pub fn lock_waits(&self) -> u64 {
        self.registration.counts.lock_waits.now()
    }

    /// Whether the last operation committed something that is not confirmed yet.
    pub fn is_unconfirmed(&self) -> bool {
        self.local.parks() && self.active().held.unconfirmed.is_some()
    }

    /// Makes the commit of a parking session as durable as the engine's options say, and releases
    /// its locks. The first of several sessions that confirms forces the log for all that committed
    /// before. The next operation confirms first if this was not called.
    ///
    /// # Errors
    /// If the log could not be written, whether it is committed is only known after the next start.
    pub fn confirm(&mut self) -> Result<(), Status> {
        self.active().confirm()
    }
}
