//! The shared state of an engine.
//!
//! All of it may be in memory that processes share: latches are those of `concurve-latch`, hash
//! tables are [`Table`](crate::table::Table)s, and the storage knows its files by name. A process
//! that dies in an operation dies holding a latch, and the next generation of engines recovers from
//! the log. If one dies between operations, its successor calls [`Shared::end_sessions_of`].

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use concurve_latch::{Mutex, MutexGuard, RwLock};
use crossbeam_utils::CachePadded;

use crate::admission::Admission;
use crate::cache::Cache;
use crate::checkpoint::Checkpoints;
use crate::classes;
use crate::control::Checkpoint;
use crate::counted::{AtomicBool, AtomicU64};
use crate::definition::FileDefinition;
use crate::error::Fault;
use crate::extents::Extent;
use crate::file::{self, RecordFile};
use crate::locks::LockTable;
use crate::log::Log;
use crate::options::{EngineOptions, Latching, admission, lock_looks, lock_stripes};
use crate::registry::{NUMBERS, OwnNumbers, Registry};
use crate::status::Status;
use crate::storage::Storage;
use crate::store::Store;

/// Most files at a time, and most that a folder ever had: a file that was dropped keeps its number.
const FILES_MAX: usize = 10_000;
const FILES_EVER_MAX: u64 = 65_536;

/// The state that all sessions share.
pub struct Shared {
    pub options: EngineOptions,
    pub store: Store,
    pub locks: LockTable,
    /// How often a lock is looked at before a session sleeps for it.
    pub lock_looks: u32,
    pub sessions: Registry,
    pub admission: CachePadded<Admission>,
    pub checkpoints: CachePadded<Checkpoints>,
    pub storage: Arc<dyn Storage>,
    files: CachePadded<RwLock<Vec<Arc<RecordFile>>>>,
    /// Latched while a file is made or dropped.
    files_change: CachePadded<Mutex<()>>,
    /// Latched during an operation, with global latching.
    operation_latch: CachePadded<Mutex<()>>,
    transactions: CachePadded<AtomicU64>,
    failure: Mutex<Option<Fault>>,
    /// Each operation reads it: so what is written often has lines of its own.
    has_failed: AtomicBool,
    /// Called when the engine has stopped after a fault.
    when_stopped: Mutex<Option<WhenStopped>>,
}

/// What is done when an engine has stopped.
type WhenStopped = Box<dyn Fn() + Send + Sync>;

impl Shared {
    pub fn new(
        storage: Arc<dyn Storage>,
        options: EngineOptions,
        cache: Cache,
        log: Log,
        checkpoints: Checkpoints,
    ) -> Self {
        Self {
            locks: LockTable::new(lock_stripes(options.latching)),
            lock_looks: lock_looks(&options),
            admission: CachePadded::new(admission(&options)),
            options,
            store: Store { cache, log },
            sessions: Registry::new(),
            checkpoints: CachePadded::new(checkpoints),
            storage,
            files: CachePadded::new(classes::files().rwlock(Vec::new())),
            files_change: CachePadded::new(classes::files().mutex(())),
            operation_latch: CachePadded::new(classes::operation().mutex(())),
            transactions: CachePadded::new(AtomicU64::new(1)),
            failure: classes::files().mutex(None),
            has_failed: AtomicBool::new(false),
            when_stopped: classes::files().mutex(None),
        }
    }

    pub fn add_file(&self, file: RecordFile) {
        let mut files = self.files.write();
        files.push(Arc::new(file));
    }

    pub fn file(&self, id: u32) -> Arc<RecordFile> {
        Arc::clone(&self.files.read()[id as usize])
    }

    pub fn file_named(&self, name: &str) -> Option<Arc<RecordFile>> {
        let files = self.files.read();
        let mut existing = files.iter().filter(|it| !it.is_dropped());
        existing.find(|it| it.name == name).cloned()
    }

    pub fn create_file(&self, name: &str, definition: &FileDefinition) -> Result<(), Fault> {
        file::check_name(name)?;
        definition.check()?;
        let _guard = self.files_change.lock();
        if let Some(text) = self.why_failed() {
            return Err(Fault::Stopped(
                text,
                self.check().err().unwrap_or(Status::Io),
            ));
        }
        if self.file_named(name).is_some() {
            return Err(Fault::Exists(name.to_owned()));
        }
        self.check_files()?;
        let created = self.make_file(name, definition);
        created.map_err(|fault| self.stopped_by(fault))
    }

    /// Refuses one more file, if there are as many as can be.
    fn check_files(&self) -> Result<(), Fault> {
        if self.files().len() >= FILES_MAX {
            return Err(Fault::Definition(format!(
                "there are {FILES_MAX} files, and no more are possible: drop some"
            )));
        }
        if self.file_count() >= FILES_EVER_MAX {
            return Err(Fault::Definition(format!(
                "the folder has had {FILES_EVER_MAX} files, dropped ones included, and no more are possible: \
                 start with a new folder"
            )));
        }
        Ok(())
    }

    fn make_file(&self, name: &str, definition: &FileDefinition) -> Result<(), Fault> {
        let id = self.file_count() as u32;
        let header = file::create(self.storage.as_ref(), id, name, definition)?;
        self.store.cache.add_disk(Arc::clone(&header.disk));
        let disk = Arc::clone(&header.disk);
        let file = header.into_file();
        file.inspect(disk.as_ref(), None)?;
        self.add_file(file);
        self.note_files()
    }

    /// Notes durably how many files there are, so that a start notices if one is missing.
    fn note_files(&self) -> Result<(), Fault> {
        let mut control = self.checkpoints.control.lock();
        let next = Checkpoint {
            files: self.file_count(),
            ..control.last
        };
        let mut extents = control.extents.clone();
        for file in self.files() {
            if extents.iter().all(|it| it.file != file.id) {
                extents.push(Extent {
                    file: file.id,
                    name: file.path(),
                    ..Extent::default()
                });
            }
        }
        control.write(next, extents)
    }

    /// The number of files, dropped ones included.
    pub fn file_count(&self) -> u64 {
        self.files.read().len() as u64
    }

    /// Drops a file that no session uses.
    pub fn drop_file(&self, file: &RecordFile) -> Result<(), Fault> {
        let _guard = self.files_change.lock();
        file.mark_dropped(self.storage.as_ref(), self.store.log.end())
    }

    /// Frees the pages of files that were dropped before the log reached `lsn`, where recovery
    /// begins to read it.
    pub fn shrink_dropped_files(&self, lsn: u64) -> Result<(), Fault> {
        let files = self.files.read().clone();
        files.iter().try_for_each(|file| {
            let disk = self.store.cache.disk(file.id);
            file.shrink_if_dropped(disk.as_ref(), lsn)
        })
    }

    /// All files that are not dropped.
    pub fn files(&self) -> Vec<Arc<RecordFile>> {
        let files = self.files.read();
        let existing = files.iter().filter(|it| !it.is_dropped());
        existing.cloned().collect()
    }

    /// The names of all files.
    pub fn names(&self) -> Vec<String> {
        self.files().iter().map(|it| it.name.clone()).collect()
    }

    /// The latch that an operation must hold, if any.
    pub fn latch_operation<'a>(
        &'a self,
        file: Option<&'a RecordFile>,
    ) -> Option<MutexGuard<'a, ()>> {
        let mutex = match self.options.latching {
            Latching::Global => Some(&*self.operation_latch),
            Latching::File => file.map(|it| &it.operation_latch),
            Latching::Record => None,
        };
        mutex.map(|it| it.lock())
    }

    /// The number of a new transaction. A session takes some at a time.
    pub fn new_transaction(&self, own: &OwnNumbers) -> u64 {
        own.next(|| self.transactions.fetch_add(NUMBERS, Relaxed))
    }

    /// Fails if the engine cannot continue.
    pub fn check(&self) -> Result<(), Status> {
        if self.has_failed.load(Relaxed) {
            return Err(self
                .failure
                .lock()
                .as_ref()
                .map_or(Status::Io, Fault::status));
        }
        Ok(())
    }

    /// Why the engine cannot continue, if it cannot.
    pub fn why_failed(&self) -> Option<String> {
        let failed = self.failure.lock();
        failed.as_ref().map(ToString::to_string)
    }

    /// Stops the engine after a fault, unless it concerns only one operation; returns its status.
    pub fn fail(&self, fault: Fault) -> Status {
        match fault {
            Fault::CacheFull => fault.status(),
            fault => self.stop(fault),
        }
    }

    /// Stops the engine after a fault of the disk; returns the fault.
    pub fn stopped_by(&self, fault: Fault) -> Fault {
        if let Some(kept) = fault.of_the_disk() {
            self.fail(kept);
        }
        fault
    }

    /// Stops the engine after any fault, because a change is half done; returns its status.
    pub fn stop(&self, fault: Fault) -> Status {
        let status = fault.status();
        self.failure.lock().get_or_insert(fault);
        self.has_failed.store(true, SeqCst);
        self.tell_that_stopped();
        status
    }

    /// Has this called once the engine has stopped; only the first such call counts.
    pub fn when_stopped(&self, call: impl Fn() + Send + Sync + 'static) {
        self.when_stopped
            .lock()
            .get_or_insert_with(|| Box::new(call));
        if self.has_failed.load(SeqCst) {
            self.tell_that_stopped();
        }
    }

    fn tell_that_stopped(&self) {
        if let Some(call) = &*self.when_stopped.lock() {
            call();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    /// What CPUs fetch together.
    const LINES: usize = 128;

    #[test]
    fn what_each_operation_reads_shares_no_line_with_what_others_write() {
        let line = |offset: usize| offset / LINES;
        let read = [
            ("options", line(offset_of!(Shared, options))),
            ("has_failed", line(offset_of!(Shared, has_failed))),
            ("storage", line(offset_of!(Shared, storage))),
        ];
        let written = [
            ("transactions", line(offset_of!(Shared, transactions))),
            ("admission", line(offset_of!(Shared, admission))),
            ("checkpoints", line(offset_of!(Shared, checkpoints))),
            ("files", line(offset_of!(Shared, files))),
            ("store", line(offset_of!(Shared, store))),
            ("locks", line(offset_of!(Shared, locks))),
            ("sessions", line(offset_of!(Shared, sessions))),
        ];
        println!("{read:?}, {written:?}");
        for (name, line) in read {
            let same = written.iter().find(|it| it.1 == line);
            assert_eq!(same, None, "{name}");
        }
        // What is written in these is in lines of their own, too.
        let alignments = [
            align_of::<Shared>(),
            align_of::<Store>(),
            align_of::<LockTable>(),
            align_of::<Registry>(),
        ];
        assert!(alignments.iter().all(|it| *it >= LINES));
    }
}
