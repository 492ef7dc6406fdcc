//! Checkpoints: changed pages go to the disk, so that little of the log must be read after a crash.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, OnceLock};
use std::thread::Thread;

use crate::control::{Checkpoint, Control};
use crate::engine::{POISONED, Shared};
use crate::error::Fault;

/// When the next checkpoint is due, and what the last one was.
pub struct Checkpoints {
    last: Mutex<(Control, Checkpoint)>,
    /// Due when the log reaches this byte.
    due: AtomicU64,
    made: AtomicU64,
    is_stopped: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Checkpoints {
    pub fn new(control: Control, last: Checkpoint) -> Self {
        Self {
            last: Mutex::new((control, last)),
            due: AtomicU64::new(u64::MAX),
            made: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
            thread: OnceLock::new(),
        }
    }

    pub fn wake_with(&self, thread: Thread) {
        let _ = self.thread.set(thread);
    }

    /// Wakes the thread that makes checkpoints.
    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Has one made at once, by the thread that makes them.
    pub fn ask(&self) {
        self.due.store(0, Relaxed);
        self.wake();
    }

    pub fn made(&self) -> u64 {
        self.made.load(Relaxed)
    }

    pub fn stop(&self) {
        self.is_stopped.store(true, SeqCst);
    }
}

impl Shared {
    /// Called when the log has grown to a byte.
    pub fn log_is_at(&self, lsn: u64) {
        if lsn >= self.checkpoints.due.load(Relaxed) || self.store.log.wants_spare() {
            self.checkpoints.wake();
        }
    }

    /// Makes a checkpoint.
    ///
    /// Reading the log will begin where it ends now, or where the oldest transaction that runs
    /// begins. All changes before are on the disk when the control file says so. A change is in the
    /// log after its page is marked as changed, and a transaction's first record after its place in
    /// the registry tells of it; the log's mutex orders both before what is read here.
    pub fn checkpoint(&self) -> Result<(), Fault> {
        let mut last = self.checkpoints.last.lock().expect(POISONED);
        let (control, checkpoint) = &mut *last;
        let end = self.store.log.end();
        let start = end.min(self.sessions.first_lsn());
        let due = end.saturating_add(self.settings.checkpoint_bytes);
        self.checkpoints.due.store(due, Relaxed);
        let (cache, log) = (&self.store.cache, &self.store.log);
        cache.flush_all(log, || self.turn(None))?;
        log.sync_to(end)?;
        *checkpoint = Checkpoint {
            sequence: checkpoint.sequence + 1,
            start,
            durable: end,
        };
        control.write(checkpoint)?;
        self.checkpoints.made.fetch_add(1, Relaxed);
        log.forget_before(start)
    }
}

/// Makes checkpoints and files for the log when they are due, until the engine ends or fails.
pub fn run_checkpointer(shared: &Shared) {
    let checkpoints = &shared.checkpoints;
    while !checkpoints.is_stopped.load(SeqCst) {
        let done = if shared.store.log.wants_spare() {
            shared.store.log.prepare()
        } else if shared.store.log.end() >= checkpoints.due.load(Relaxed) {
            shared.checkpoint()
        } else {
            std::thread::park();
            Ok(())
        };
        if let Err(fault) = done {
            shared.fail(fault);
            return;
        }
    }
}
