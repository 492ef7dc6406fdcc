//! The schedule of checkpoints.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use concurve_latch::{Condvar, Mutex};

use crate::classes;
use crate::control::Control;
use crate::counted::{AtomicBool, AtomicU64};

/// A checkpoint is to take at most such a part of the time.
const SHARE: u64 = 8;

/// By how many bytes the log grows from the begin of a checkpoint to the begin of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Distance {
    pub least: u64,
    pub most: u64,
}

impl Distance {
    /// Where the next checkpoint is due after one that began with the log at a byte, and ended with it at
    /// another one: by how much the log has grown says how long the checkpoint took, as a part of what the log
    /// took to grow by the distance.
    fn next(self, began: u64, ended: u64) -> u64 {
        let during = ended.saturating_sub(began);
        let wanted = during.saturating_mul(SHARE);
        began.saturating_add(wanted.min(self.most).max(self.least))
    }
}

/// When the next checkpoint is due: when the log reaches this byte.
pub struct Due(AtomicU64);

impl Due {
    fn new() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }

    /// Whether one is due, with the log at a byte.
    pub fn is_reached(&self, log: u64) -> bool {
        log >= self.0.load(Relaxed)
    }

    /// A checkpoint begins with the log at a byte. Returns what [`Due::end`] wants.
    pub fn begin(&self, log: u64, distance: Distance) -> Begun {
        let due = distance.next(log, log);
        self.0.store(due, Relaxed);
        Begun { log, due }
    }

    /// A checkpoint ends with the log at a byte. If another one was requested in the meantime, that stays due.
    pub fn end(&self, begun: Begun, log: u64, distance: Distance) {
        let next = distance.next(begun.log, log);
        let _ = self.0.compare_exchange(begun.due, next, Relaxed, Relaxed);
    }

    fn request(&self) {
        self.0.store(0, Relaxed);
    }
}

/// A checkpoint that has begun.
#[derive(Debug, Clone, Copy)]
pub struct Begun {
    log: u64,
    /// When the next one would be due, if it took no time.
    due: u64,
}

/// The last checkpoint, and when the next one is due.
pub struct Checkpoints {
    /// Latched while a checkpoint is made.
    pub making: Mutex<()>,
    /// What the control file says. Latched for a moment, after [`Checkpoints::making`].
    pub control: Mutex<Control>,
    pub due: Due,
    pub made: AtomicU64,
    /// Whether the checkpointer is to end.
    pub is_stopped: Mutex<bool>,
    /// Notified when there is work for the checkpointer.
    pub called: Condvar,
    /// It was called, and has not looked for work since: to call it again would only cost a latch.
    is_called: AtomicBool,
}

impl Checkpoints {
    pub fn new(control: Control) -> Self {
        let class = classes::checkpoint();
        Self {
            making: class.mutex(()),
            control: classes::files().mutex(control),
            due: Due::new(),
            made: AtomicU64::new(0),
            is_stopped: class.mutex(false),
            called: Condvar::new(),
            is_called: AtomicBool::new(false),
        }
    }

    /// Wakes the checkpointer.
    pub fn wake(&self) {
        if self.is_called.load(SeqCst) || self.is_called.swap(true, SeqCst) {
            return;
        }
        // Under the mutex: the checkpointer sees the work, or is asleep.
        drop(self.is_stopped.lock());
        self.called.notify_one();
    }

    /// To be called by the checkpointer before it looks for work.
    pub fn begin_to_look(&self) {
        self.is_called.store(false, SeqCst);
    }

    /// Requests a checkpoint from the checkpointer.
    pub fn request(&self) {
        self.due.request();
        self.wake();
    }

    pub fn set_stopped(&self, is_stopped: bool) {
        *self.is_stopped.lock() = is_stopped;
        self.called.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_checkpoint_that_takes_long_comes_later() {
        let distance = Distance {
            least: 100,
            most: 400,
        };
        // It took no time, an eighth of the distance, more, and longer than the log may grow.
        let next = [0, 12, 13, 40, 50, 1000].map(|during| distance.next(7, 7 + during) - 7);
        assert_eq!(next, [100, 100, 104, 320, 400, 400]);
    }

    #[test]
    fn a_checkpoint_that_is_requested_during_another_one_is_made() {
        let distance = Distance {
            least: 100,
            most: 400,
        };
        for is_requested in [false, true] {
            let due = Due::new();
            let begun = due.begin(7, distance);
            assert_eq!([106, 107].map(|it| due.is_reached(it)), [false, true]);
            if is_requested {
                due.request();
            }
            due.end(begun, 57, distance);
            let wanted = [is_requested, true];
            assert_eq!([8, 407].map(|it| due.is_reached(it)), wanted);
        }
    }

    proptest! {
        #[test]
        fn the_next_checkpoint_is_due_within_the_bounds(
            least: u64, more: u64, began: u64, during: u64,
        ) {
            let most = least.saturating_add(more);
            let next = Distance { least, most }.next(began, began.saturating_add(during));
            prop_assert!(next >= began.saturating_add(least));
            prop_assert!(next <= began.saturating_add(most));
        }
    }
}
