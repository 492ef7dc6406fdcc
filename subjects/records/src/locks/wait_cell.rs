//! How a waiting session learns that its lock is granted.

use std::sync::Arc;
use std::time::Duration;

use concurve_latch::{Condvar, Mutex};

use crate::classes;

/// Called when a lock is granted to a session that does not sleep for it.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// Tells a waiting session that its lock is granted.
pub struct WaitCell {
    is_granted: Mutex<bool>,
    changed: Condvar,
    waker: Option<Waker>,
}

impl std::fmt::Debug for WaitCell {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.write_str("WaitCell")
    }
}

impl WaitCell {
    /// With a waker the session is called, without one it sleeps on the cell.
    pub fn new(waker: Option<Waker>) -> Self {
        Self {
            is_granted: classes::locks().mutex(false),
            changed: Condvar::new(),
            waker,
        }
    }

    pub fn grant(&self) {
        *self.is_granted.lock() = true;
        match &self.waker {
            Some(waker) => waker(),
            None => self.changed.notify_one(),
        }
    }

    pub fn is_granted(&self) -> bool {
        *self.is_granted.lock()
    }

    pub fn is_granted_within(&self, time: Duration) -> bool {
        let mut is_granted = self.is_granted.lock();
        let waits = |is_granted: &mut bool| !*is_granted;
        !self.changed.wait_while_for(&mut is_granted, waits, time)
    }

    pub fn reset(&self) {
        *self.is_granted.lock() = false;
    }
}
