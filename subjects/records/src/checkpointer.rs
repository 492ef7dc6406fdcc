//! Checkpoints: changed pages are written to the disk, so that recovery reads little of the log.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;

use crate::checkpoint::Distance;
use crate::control::Checkpoint;
use crate::error::Fault;
use crate::extents::Extent;
use crate::shared::Shared;
use crate::status::Status;

impl Shared {
    /// To be called when the log has grown to a byte: wakes the checkpointer if there is work.
    pub fn log_is_at(&self, lsn: u64) {
        if self.checkpoints.due.is_reached(lsn) || self.store.log.wants_files() {
            self.checkpoints.wake();
        }
    }

    fn has_work(&self) -> bool {
        let log = &self.store.log;
        log.wants_files() || self.checkpoints.due.is_reached(log.end())
    }

    /// Names and makes files of the log, and makes a checkpoint, if that is due. A checkpoint does not wait until no
    /// file is wanted: it frees files, and the log may need new ones as fast as the disk takes them.
    pub fn do_due_work(&self) -> Result<(), Fault> {
        let log = &self.store.log;
        if log.wants_files() {
            // A checkpoint prepares them, too.
            let _making = self.checkpoints.making.lock();
            log.prepare_files()?;
        }
        match self.checkpoints.due.is_reached(log.end()) {
            true => self.checkpoint(),
            false => Ok(()),
        }
    }

    /// Makes a checkpoint.
    ///
    /// After it, recovery reads the log from its present end, or from where the oldest running
    /// transaction begins. All changes before are on the disk when the control file is written. A
    /// page is marked dirty before its change is logged, and a transaction's start is in the
    /// registry before its first record is; the mutex of the log orders both before the reads here.
    pub fn checkpoint(&self) -> Result<(), Fault> {
        let _making = self.checkpoints.making.lock();
        let end = self.store.log.end();
        // A session may have noted a byte before the last checkpoint's begin, just after that one had read
        // the registry: then all of its records are after it.
        let earlier = self.checkpoints.control.lock().last.start;
        let start = end.min(self.sessions.first_lsn()).max(earlier);
        let distance = Distance {
            least: self.options.checkpoint_bytes,
            most: self.options.checkpoint_bytes_max(),
        };
        let begun = self.checkpoints.due.begin(end, distance);
        let (cache, log) = (&self.store.cache, &self.store.log);
        cache.flush_all(log, || self.latch_operation(None))?;
        log.sync_to(end)?;
        let extents = self.extents()?;
        let mut control = self.checkpoints.control.lock();
        let next = Checkpoint {
            start,
            durable: end,
            files: self.file_count().max(control.last.files),
            ..control.last
        };
        control.write(next, extents)?;
        drop(control);
        self.checkpoints.made.fetch_add(1, Relaxed);
        self.shrink_dropped_files(start)?;
        log.forget_before(start)?;
        self.checkpoints.due.end(begun, log.end(), distance);
        Ok(())
    }
}

impl Shared {
    /// Which pages of each file are on the disk, after all that changed were written.
    fn extents(&self) -> Result<Vec<Extent>, Fault> {
        let before = self.checkpoints.control.lock().extents.clone();
        let files = self.files();
        let each = files.iter().map(|file| {
            let known = before.iter().find(|it| it.file == file.id).cloned();
            self.store.cache.extent(known.unwrap_or_else(|| Extent {
                file: file.id,
                name: file.path(),
                ..Extent::default()
            }))
        });
        each.collect()
    }
}

/// The thread that makes checkpoints. Dropping this stops the thread and waits for its end.
pub struct Checkpointer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<Self, Fault> {
        shared.checkpoints.set_stopped(false);
        let thread = std::thread::Builder::new().name("checkpointer".to_owned());
        let of_thread = Arc::clone(shared);
        let started = thread.spawn(move || {
            let work = std::panic::AssertUnwindSafe(|| run(&of_thread));
            if std::panic::catch_unwind(work).is_err() {
                let why = "the thread of checkpoints panicked; standard error says where";
                of_thread.stop(Fault::Stopped(why.to_owned(), Status::Io));
            }
        });
        Ok(Self {
            shared: Arc::clone(shared),
            thread: Some(
                started.map_err(Fault::io(|| "start the thread of checkpoints".to_owned()))?,
            ),
        })
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.shared.checkpoints.set_stopped(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Makes checkpoints and spare log files when they are due, until it is stopped or the engine
/// fails.
fn run(shared: &Shared) {
    let checkpoints = &shared.checkpoints;
    loop {
        let mut is_stopped = checkpoints.is_stopped.lock();
        let is_idle = |is_stopped: &mut bool| {
            checkpoints.begin_to_look();
            !*is_stopped && !shared.has_work()
        };
        checkpoints.called.wait_while(&mut is_stopped, is_idle);
        if *is_stopped {
            return;
        }
        drop(is_stopped);
        if let Err(fault) = shared.do_due_work() {
            shared.fail(fault);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::mem::ManuallyDrop;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::storage::{Disk, Folder, Storage};
    use crate::{Engine, EngineOptions, FileDefinition};

    /// A folder in which the checkpointer can open, rename or remove nothing without a panic, once that is
    /// set.
    struct Panicking(Folder, Arc<AtomicBool>);

    impl Panicking {
        fn check(&self) {
            let is_it = std::thread::current().name() == Some("checkpointer");
            assert!(!is_it || !self.1.load(Relaxed), "as it was asked to");
        }
    }

    impl Storage for Panicking {
        fn open(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
            self.check();
            self.0.open(name)
        }

        fn rename(&self, from: &str, to: &str) -> io::Result<()> {
            self.check();
            self.0.rename(from, to)
        }

        fn remove(&self, name: &str) -> io::Result<()> {
            self.check();
            self.0.remove(name)
        }

        fn names(&self) -> io::Result<Vec<String>> {
            self.0.names()
        }

        fn sync_names(&self) -> io::Result<()> {
            self.check();
            self.0.sync_names()
        }

        fn boot(&self) -> u64 {
            self.0.boot()
        }

        fn now(&self) -> Duration {
            self.0.now()
        }
    }

    #[test]
    fn a_panic_of_the_checkpointer_stops_the_engine() {
        let place = tempfile::tempdir().unwrap();
        let panics = Arc::new(AtomicBool::new(false));
        let storage = Panicking(Folder::open(place.path()).unwrap(), Arc::clone(&panics));
        let options = EngineOptions {
            checkpoint_bytes: 1 << 16,
            ..EngineOptions::default()
        };
        let (engine, _) = Engine::open_in(Arc::new(storage), options).unwrap();
        // Neither is closed: the checkpointer may have panicked with a latch that this would take.
        let engine = ManuallyDrop::new(engine);
        let file = FileDefinition {
            record_bytes: 1000,
            keys: Vec::new(),
        };
        engine.create_file("f", &file).unwrap();
        let mut session = ManuallyDrop::new(engine.session());
        let opened = session.open("f").unwrap();
        panics.store(true, Relaxed);
        // The log grows until the thread makes a new file of it. Whoever waits for a latch of a thread
        // that panicked panics, too.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            for _ in 0..100_000 {
                if session.insert(opened, &[b'x'; 1000]).is_err() {
                    break;
                }
            }
        }));
        // The session may meet the latch before the thread has told why it ends.
        let deadline = Instant::now() + Duration::from_secs(60);
        let why = loop {
            if let Some(why) = engine.failure() {
                break why;
            }
            assert!(Instant::now() < deadline, "the engine goes on");
            std::thread::sleep(Duration::from_millis(1));
        };
        assert!(why.contains("checkpoints panicked"), "{why}");
    }
}
