//! Checkpoints: changed pages go to the disk, so that little of the log must be read after a crash.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;

use concurve_latch::{Condvar, Mutex};

use crate::classes;
use crate::control::{Checkpoint, Control};
use crate::error::{Fault, While};
use crate::shared::Shared;

/// When the next checkpoint is due, and what the last one was.
pub struct Checkpoints {
    last: Mutex<(Control, Checkpoint)>,
    /// Due when the log reaches this byte.
    due: AtomicU64,
    made: AtomicU64,
    /// Whether their thread is to end.
    is_stopped: Mutex<bool>,
    /// There is something to do for it.
    called: Condvar,
}

impl Checkpoints {
    pub fn new(control: Control, last: Checkpoint) -> Self {
        let class = classes::checkpoint();
        Self {
            last: class.mutex((control, last)),
            due: AtomicU64::new(u64::MAX),
            made: AtomicU64::new(0),
            is_stopped: class.mutex(false),
            called: Condvar::new(),
        }
    }

    /// Wakes the thread that makes checkpoints.
    fn wake(&self) {
        // It has seen that there is something to do, or is asleep.
        drop(self.is_stopped.lock());
        self.called.notify_one();
    }

    /// Has one made at once, by the thread that makes them.
    pub fn ask(&self) {
        self.due.store(0, Relaxed);
        self.wake();
    }

    pub fn made(&self) -> u64 {
        self.made.load(Relaxed)
    }

    fn set_stopped(&self, is_stopped: bool) {
        *self.is_stopped.lock() = is_stopped;
        self.called.notify_one();
    }
}

impl Shared {
    /// Called when the log has grown to a byte.
    pub fn log_is_at(&self, lsn: u64) {
        if lsn >= self.checkpoints.due.load(Relaxed) || self.store.log.wants_spare() {
            self.checkpoints.wake();
        }
    }

    fn is_something_due(&self) -> bool {
        let due = self.checkpoints.due.load(Relaxed);
        self.store.log.wants_spare() || self.store.log.end() >= due
    }

    /// Makes a checkpoint.
    ///
    /// Reading the log will begin where it ends now, or where the oldest transaction that runs
    /// begins. All changes before are on the disk when the control file says so. A change is in the
    /// log after its page is marked as changed, and a transaction's first record after its place in
    /// the registry tells of it; the log's mutex orders both before what is read here.
    pub fn checkpoint(&self) -> Result<(), Fault> {
        let mut last = self.checkpoints.last.lock();
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
        self.shrink_gone_files(start)?;
        log.forget_before(start)
    }
}

/// The thread that makes checkpoints. Dropping it stops the thread and waits for its end.
pub struct Checkpointer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<Self, Fault> {
        shared.checkpoints.set_stopped(false);
        let thread = std::thread::Builder::new().name("checkpointer".to_owned());
        let of_thread = Arc::clone(shared);
        let started = thread.spawn(move || run(&of_thread));
        Ok(Self {
            shared: Arc::clone(shared),
            thread: Some(started.when(|| "start the thread of checkpoints".to_owned())?),
        })
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.shared.checkpoints.set_stopped(true);
        if let Some(thread) = self.thread.take() {
            // A panic of that thread has broken the latches that it held, and is told there.
            let _ = thread.join();
        }
    }
}

/// Makes checkpoints and files for the log when they are due, until it is stopped or the engine fails.
fn run(shared: &Shared) {
    let checkpoints = &shared.checkpoints;
    loop {
        let mut is_stopped = checkpoints.is_stopped.lock();
        let is_idle = |is_stopped: &mut bool| !*is_stopped && !shared.is_something_due();
        checkpoints.called.wait_while(&mut is_stopped, is_idle);
        if *is_stopped {
            return;
        }
        drop(is_stopped);
        let done = match shared.store.log.wants_spare() {
            true => shared.store.log.prepare(),
            false => shared.checkpoint(),
        };
        if let Err(fault) = done {
            shared.fail(fault);
            return;
        }
    }
}
