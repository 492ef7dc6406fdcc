//! A session during an operation.

use std::sync::atomic::Ordering::Relaxed;

use concurve_latch::MutexGuard;

use crate::held::Held;
use crate::registry::Registration;
use crate::shared::Shared;

/// A session during an operation, which latches what the session holds. No other thread takes that
/// latch; but an engine that dies while it holds a latch may have left shared data half changed.
pub(super) struct Active<'a> {
    pub(super) shared: &'a Shared,
    pub(super) registration: &'a Registration,
    pub(super) held: MutexGuard<'a, Held>,
}

impl<'a> Active<'a> {
    pub(super) fn new(shared: &'a Shared, registration: &'a Registration) -> Self {
        Self {
            shared,
            registration,
            held: registration.held.lock(),
        }
    }

    pub(super) fn in_transaction(&self) -> bool {
        self.held.transaction.kind.is_some()
    }

    /// Releases all that the session holds. A transaction or operation that has not ended is rolled
    /// back.
    pub(super) fn end(&mut self) {
        self.leave_queue();
        let _ = self.confirm();
        self.registration
            .counts
            .aborts
            .add(u64::from(self.in_transaction()));
        let _ = self.roll_back();
        self.shared.admission.give_up(&self.registration.slot);
        let owner = self.registration.number;
        for kept in std::mem::take(&mut self.held.kept) {
            self.shared.locks.release(owner, kept.name);
        }
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        let held = &self.held;
        let is_at_rest =
            held.transaction.kind.is_none() && held.parked.is_none() && held.unconfirmed.is_none();
        let last = self.registration.is_at_rest.load(Relaxed);
        if last != is_at_rest {
            self.registration.is_at_rest.store(is_at_rest, Relaxed);
        }
    }
}

impl Shared {
    /// Ends the sessions of an engine that died outside of their operations.
    pub fn end_sessions_of(&self, engine: u32) {
        for registration in self.sessions.of_engine(engine) {
            Active::new(self, &registration).end();
            self.sessions.remove(registration.number);
        }
    }
}
