//! The engine: what its sessions share.
//!
//! All of it may be in memory that processes share: latches are of `concurve-latch`, hash tables are
//! [`Table`](crate::table::Table)s, and the storage knows its files by name. A process that dies in an
//! operation dies with a latch, and the next engine recovers from the log; see [`crate::session`] for
//! what one leaves behind that dies between operations.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};

use concurve_latch::{Mutex, MutexGuard, RwLock};

use crate::cache::{Cache, PAGES_MIN};
use crate::checkpoint::{Checkpointer, Checkpoints};
use crate::classes;
use crate::definition::FileDefinition;
use crate::error::Fault;
use crate::file::{self, RecordFile};
use crate::gate::Gate;
use crate::locks::LockTable;
use crate::log::Log;
use crate::recovery;
use crate::registry::Registry;
use crate::session::Session;
use crate::settings::{Latching, Settings, gate, stripes};
use crate::statistics::Statistics;
use crate::status::Status;
use crate::storage::{Folder, Storage};
use crate::store::Store;

/// What all sessions share.
pub struct Shared {
    pub settings: Settings,
    pub store: Store,
    pub locks: LockTable,
    pub sessions: Registry,
    pub gate: Gate,
    pub checkpoints: Checkpoints,
    pub storage: Arc<dyn Storage>,
    files: RwLock<Vec<Arc<RecordFile>>>,
    /// Only one file is made at a time.
    making: Mutex<()>,
    /// Held while an operation works, under global latching.
    turn: Mutex<()>,
    transactions: AtomicU64,
    failure: Mutex<Option<Fault>>,
    has_failed: AtomicBool,
}

/// An open engine. Dropping it is like a crash that loses nothing; [`Engine::close`] spares the next
/// start its recovery.
pub struct Engine {
    shared: Arc<Shared>,
    /// `None`: whoever shares the engine starts one.
    checkpointer: Option<Checkpointer>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        let settings = &self.shared.settings;
        out.debug_tuple("Engine").field(settings).finish()
    }
}

/// What a start found to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Records of the log that were read.
    pub records: u64,
    /// Transactions that had not committed, and were undone.
    pub undone: u64,
    /// Transactions that had committed, and whose dead records were taken out.
    pub settled: u64,
}

impl Engine {
    /// Opens or makes an engine in a folder, and recovers what a crash left.
    ///
    /// # Errors
    /// If the folder is used by another engine, is damaged, or cannot be read or written.
    pub fn open(folder: &Path, settings: Settings) -> Result<(Self, Recovered), Fault> {
        Self::open_in(Arc::new(Folder::open(folder)?), settings)
    }

    /// The same in another kind of storage.
    pub fn open_in(
        storage: Arc<dyn Storage>,
        settings: Settings,
    ) -> Result<(Self, Recovered), Fault> {
        let (mut engine, recovered) = Self::open_without_threads(storage, settings)?;
        engine.checkpointer = Some(engine.start_checkpointer()?);
        Ok((engine, recovered))
    }

    /// Opens an engine in shared memory, for processes that will be forked: no thread is started here.
    /// One of them calls [`Engine::start_checkpointer`].
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_shared(folder: &Path, settings: Settings) -> Result<(Self, Recovered), Fault> {
        Self::open_without_threads(Arc::new(Folder::open(folder)?), settings)
    }

    fn open_without_threads(
        storage: Arc<dyn Storage>,
        settings: Settings,
    ) -> Result<(Self, Recovered), Fault> {
        if settings.cache_pages < PAGES_MIN {
            let pages = settings.cache_pages;
            let text =
                format!("a cache of {pages} pages is too small: give it {PAGES_MIN} or more");
            return Err(Fault::Definition(text));
        }
        let (shared, recovered) = recovery::open(storage, settings)?;
        let engine = Self {
            shared: Arc::new(shared),
            checkpointer: None,
        };
        Ok((engine, recovered))
    }

    /// The thread that makes checkpoints, until it is dropped: one for each engine that was opened to
    /// be shared, in one of the processes.
    ///
    /// # Errors
    /// If the system does not start it.
    pub fn start_checkpointer(&self) -> Result<Checkpointer, Fault> {
        Checkpointer::start(&self.shared)
    }

    /// Ends the sessions that threads of an engine's process have made, which is dead and held no
    /// latch: what they had not committed is undone, and others get their locks.
    ///
    /// `engine` is its number, as [`concurve_latch::be_engine`] was told. To be called by the successor
    /// before it makes sessions of its own.
    pub fn end_sessions_of(&self, engine: u32) {
        self.shared.end_sessions_of(engine);
    }

    /// Makes a file of records.
    ///
    /// # Errors
    /// If there is one of this name, or the definition cannot be kept.
    pub fn create_file(&self, name: &str, definition: &FileDefinition) -> Result<(), Fault> {
        self.shared.create_file(name, definition)
    }

    /// Names and definitions of all files.
    pub fn files(&self) -> Vec<(String, FileDefinition)> {
        let files = self.shared.files.read();
        let each = files.iter().filter(|it| !it.is_gone());
        each.map(|it| (it.name.clone(), it.definition.clone()))
            .collect()
    }

    /// A session: one client. Give each thread its own.
    pub fn session(&self) -> Session {
        Session::new(Arc::clone(&self.shared))
    }

    /// Writes all changed pages, and cuts the log.
    pub fn checkpoint(&self) -> Result<(), Fault> {
        self.shared.checkpoint()
    }

    /// Looks at every record and every key. To be called while no transaction runs.
    ///
    /// # Errors
    /// If something is not in order: what, and where.
    pub fn verify(&self) -> Result<(), Fault> {
        let files = self.shared.files.read().clone();
        let mut there = files.iter().filter(|it| !it.is_gone());
        there.try_for_each(|file| crate::verify::verify(&self.shared.store, file))
    }

    /// What was done since it was opened.
    pub fn statistics(&self) -> Statistics {
        let shared = &self.shared;
        let (cache_hits, cache_misses) = shared.store.cache.hits_and_misses();
        Statistics {
            log_syncs: shared.store.log.syncs(),
            log_bytes: shared.store.log.bytes_written(),
            cache_hits,
            cache_misses,
            checkpoints: shared.checkpoints.made(),
            ..shared.sessions.statistics()
        }
    }

    /// How many locks are held or waited for.
    pub fn locks(&self) -> usize {
        self.shared.locks.count()
    }

    /// How many sessions wait for locks.
    pub fn waiting(&self) -> usize {
        self.shared.locks.waiting()
    }

    /// Why the engine cannot go on, if so. Every operation answers with its status.
    pub fn failure(&self) -> Option<String> {
        let failed = self.shared.failure.lock();
        failed.as_ref().map(ToString::to_string)
    }

    /// Ends the engine with a checkpoint. Sessions that are still there can do nothing any more.
    pub fn close(mut self) -> Result<(), Fault> {
        self.checkpointer = None;
        self.shared.checkpoint()?;
        self.shared
            .fail(Fault::Stopped("it was closed".to_owned(), Status::Io));
        Ok(())
    }
}

impl Shared {
    pub fn new(
        storage: Arc<dyn Storage>,
        settings: Settings,
        cache: Cache,
        log: Log,
        checkpoints: Checkpoints,
    ) -> Self {
        Self {
            locks: LockTable::new(stripes(settings.latching)),
            gate: gate(&settings),
            settings,
            store: Store { cache, log },
            sessions: Registry::new(),
            checkpoints,
            storage,
            files: classes::files().rwlock(Vec::new()),
            making: classes::files().mutex(()),
            turn: classes::turn().mutex(()),
            transactions: AtomicU64::new(1),
            failure: classes::files().mutex(None),
            has_failed: AtomicBool::new(false),
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
        let mut there = files.iter().filter(|it| !it.is_gone());
        there.find(|it| it.name == name).cloned()
    }

    pub fn create_file(&self, name: &str, definition: &FileDefinition) -> Result<(), Fault> {
        file::check_name(name)?;
        definition.check()?;
        let _making = self.making.lock();
        if self.file_named(name).is_some() {
            return Err(Fault::Exists(name.to_owned()));
        }
        let id = self.files.read().len() as u32;
        let header = file::create(self.storage.as_ref(), id, name, definition)?;
        self.store.cache.add_disk(Arc::clone(&header.disk));
        let disk = Arc::clone(&header.disk);
        let file = header.into_file();
        file.find_room(disk.as_ref())?;
        self.add_file(file);
        Ok(())
    }

    /// Gives up a file that nobody uses.
    pub fn drop_file(&self, file: &RecordFile) -> Result<(), Fault> {
        let _making = self.making.lock();
        file.give_up(self.storage.as_ref(), self.store.log.end())
    }

    /// Gives back the pages of files that were given up before the log reached a byte, from where on
    /// it is read after a crash.
    pub fn shrink_gone_files(&self, lsn: u64) -> Result<(), Fault> {
        let files = self.files.read().clone();
        files.iter().try_for_each(|file| {
            let disk = self.store.cache.disk(file.id);
            file.shrink_if_gone(disk.as_ref(), lsn)
        })
    }

    /// The names of all files.
    pub fn names(&self) -> Vec<String> {
        let files = self.files.read();
        let there = files.iter().filter(|it| !it.is_gone());
        there.map(|it| it.name.clone()).collect()
    }

    /// What an operation must hold while it works.
    pub fn turn<'a>(&'a self, file: Option<&'a RecordFile>) -> Option<MutexGuard<'a, ()>> {
        let mutex = match self.settings.latching {
            Latching::Global => Some(&self.turn),
            Latching::File => file.map(|it| &it.turn),
            Latching::Record => None,
        };
        mutex.map(|it| it.lock())
    }

    /// The number of a new transaction.
    pub fn new_transaction(&self) -> u64 {
        self.transactions.fetch_add(1, Relaxed)
    }

    /// Whether the engine can go on.
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

    /// Why the engine cannot go on.
    pub fn why_failed(&self) -> String {
        let failed = self.failure.lock();
        failed
            .as_ref()
            .map_or_else(String::new, ToString::to_string)
    }

    /// Notes that something failed, and that the engine cannot go on; returns the status for it.
    pub fn fail(&self, fault: Fault) -> Status {
        match fault {
            Fault::CacheFull => fault.status(),
            fault => self.fail_for_good(fault),
        }
    }

    /// The same for what cannot be left half done, whatever the fault.
    pub fn fail_for_good(&self, fault: Fault) -> Status {
        let status = fault.status();
        self.failure.lock().get_or_insert(fault);
        self.has_failed.store(true, SeqCst);
        status
    }
}
