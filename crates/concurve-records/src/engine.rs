//! The engine: what its sessions share, and the thread that makes checkpoints.

use std::path::Path;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock};
use std::thread::JoinHandle;

use crate::cache::{Cache, PAGES_MIN};
use crate::checkpoint::{Checkpoints, run_checkpointer};
use crate::definition::FileDefinition;
use crate::error::{Fault, While};
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

pub const POISONED: &str = "a thread panicked while it held a mutex of the engine";

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
    failure: OnceLock<Fault>,
    has_failed: AtomicBool,
}

/// An open engine. Dropping it is like a crash that loses nothing; [`Engine::close`] spares the next
/// start its recovery.
pub struct Engine {
    shared: Arc<Shared>,
    checkpointer: Option<JoinHandle<()>>,
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
        if settings.cache_pages < PAGES_MIN {
            let pages = settings.cache_pages;
            let text =
                format!("a cache of {pages} pages is too small: give it {PAGES_MIN} or more");
            return Err(Fault::Definition(text));
        }
        let (shared, recovered) = recovery::open(storage, settings)?;
        let shared = Arc::new(shared);
        let thread = Arc::clone(&shared);
        let checkpointer = std::thread::Builder::new()
            .name("checkpointer".to_owned())
            .spawn(move || run_checkpointer(&thread))
            .when(|| "start the thread of checkpoints".to_owned())?;
        shared.checkpoints.wake_with(checkpointer.thread().clone());
        let engine = Self {
            shared,
            checkpointer: Some(checkpointer),
        };
        Ok((engine, recovered))
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
        let files = self.shared.files.read().expect(POISONED);
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
        let files = self.shared.files.read().expect(POISONED).clone();
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
        let failed = self.shared.failure.get();
        failed.map(ToString::to_string)
    }

    /// Ends the engine with a checkpoint. Sessions that are still there can do nothing any more.
    pub fn close(mut self) -> Result<(), Fault> {
        self.stop_checkpointer();
        self.shared.checkpoint()?;
        self.shared
            .fail(Fault::Stopped("it was closed".to_owned(), Status::Io));
        Ok(())
    }

    fn stop_checkpointer(&mut self) {
        self.shared.checkpoints.stop();
        if let Some(thread) = self.checkpointer.take() {
            thread.thread().unpark();
            // A panic of that thread has poisoned what it held, and is told there.
            let _ = thread.join();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop_checkpointer();
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
            sessions: Registry::default(),
            checkpoints,
            storage,
            files: RwLock::default(),
            making: Mutex::new(()),
            turn: Mutex::new(()),
            transactions: AtomicU64::new(1),
            failure: OnceLock::new(),
            has_failed: AtomicBool::new(false),
        }
    }

    pub fn add_file(&self, file: RecordFile) {
        let mut files = self.files.write().expect(POISONED);
        files.push(Arc::new(file));
    }

    pub fn file(&self, id: u32) -> Arc<RecordFile> {
        Arc::clone(&self.files.read().expect(POISONED)[id as usize])
    }

    pub fn file_named(&self, name: &str) -> Option<Arc<RecordFile>> {
        let files = self.files.read().expect(POISONED);
        let mut there = files.iter().filter(|it| !it.is_gone());
        there.find(|it| it.name == name).cloned()
    }

    pub fn create_file(&self, name: &str, definition: &FileDefinition) -> Result<(), Fault> {
        file::check_name(name)?;
        definition.check()?;
        let _making = self.making.lock().expect(POISONED);
        if self.file_named(name).is_some() {
            return Err(Fault::Exists(name.to_owned()));
        }
        let id = self.files.read().expect(POISONED).len() as u32;
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
        let _making = self.making.lock().expect(POISONED);
        file.give_up(self.storage.as_ref())
    }

    /// The names of all files.
    pub fn names(&self) -> Vec<String> {
        let files = self.files.read().expect(POISONED);
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
        mutex.map(|it| it.lock().expect(POISONED))
    }

    /// The number of a new transaction.
    pub fn new_transaction(&self) -> u64 {
        self.transactions.fetch_add(1, Relaxed)
    }

    /// Whether the engine can go on.
    pub fn check(&self) -> Result<(), Status> {
        if self.has_failed.load(Relaxed) {
            return Err(self.failure.get().map_or(Status::Io, Fault::status));
        }
        Ok(())
    }

    /// Why the engine cannot go on.
    pub fn why_failed(&self) -> String {
        let failed = self.failure.get();
        failed.map_or_else(String::new, ToString::to_string)
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
        let _ = self.failure.set(fault);
        self.has_failed.store(true, SeqCst);
        status
    }
}
