//! The schedule of checkpoints.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use concurve_latch::{Condvar, Mutex};

use crate::classes;
use crate::control::Control;
use crate::counted::{AtomicBool, AtomicU64};

/// The last checkpoint, and when the next one is due.
pub struct Checkpoints {
    /// Latched while a checkpoint is made.
    pub making: Mutex<()>,
    /// What the control file says. Latched for a moment, after [`Checkpoints::making`].
    pub control: Mutex<Control>,
    /// The next checkpoint is due when the log reaches this byte.
    pub due: AtomicU64,
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
            due: AtomicU64::new(u64::MAX),
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
        self.due.store(0, Relaxed);
        self.wake();
    }

    pub fn set_stopped(&self, is_stopped: bool) {
        *self.is_stopped.lock() = is_stopped;
        self.called.notify_one();
    }
}
