//! What the sessions of an engine share.
//!
//! All of it may be in memory that processes share: latches are of `concurve-latch`, hash tables are
//! [`Table`](crate::table::Table)s, and the storage knows its files by name. A process that dies in an
//! operation dies with a latch, and the next engine recovers from the log; see [`crate::session`] for
//! what one leaves behind that dies between operations.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};

use concurve_latch::{Mutex, MutexGuard, RwLock};

use crate::cache::Cache;
use crate::checkpoint::Checkpoints;
use crate::classes;
use crate::definition::FileDefinition;
use crate::error::Fault;
use crate::file::{self, RecordFile};
use crate::gate::Gate;
use crate::locks::LockTable;
use crate::log::Log;
use crate::registry::Registry;
use crate::settings::{Latching, Settings, gate, stripes};
use crate::status::Status;
use crate::storage::Storage;
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

    /// All files that are there.
    pub fn files(&self) -> Vec<Arc<RecordFile>> {
        let files = self.files.read();
        let there = files.iter().filter(|it| !it.is_gone());
        there.cloned().collect()
    }

    /// The names of all files.
    pub fn names(&self) -> Vec<String> {
        self.files().iter().map(|it| it.name.clone()).collect()
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

    /// Why the engine cannot go on, if so.
    pub fn why_failed(&self) -> Option<String> {
        let failed = self.failure.lock();
        failed.as_ref().map(ToString::to_string)
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
