//! An engine, as who embeds it sees it.

use std::path::Path;
use std::sync::Arc;

use crate::cache::PAGES_MIN;
use crate::checkpoint::Checkpointer;
use crate::definition::FileDefinition;
use crate::error::Fault;
use crate::recovery;
use crate::session::Session;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::statistics::Statistics;
use crate::status::Status;
use crate::storage::{Folder, Storage};

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
        let (mut engine, recovered) = Self::open_shared_in(storage, settings)?;
        engine.checkpointer = Some(engine.start_checkpointer()?);
        Ok((engine, recovered))
    }

    /// Opens an engine in shared memory, for processes that will be forked: no thread is started here.
    /// One of them calls [`Engine::start_checkpointer`].
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_shared(folder: &Path, settings: Settings) -> Result<(Self, Recovered), Fault> {
        Self::open_shared_in(Arc::new(Folder::open(folder)?), settings)
    }

    /// The same in another kind of storage.
    pub fn open_shared_in(
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
    /// `engine` is its number, as [`concurve_latch::set_engine_of_process`] set it. To be called by the successor
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
        let files = self.shared.files();
        let each = files.iter();
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
        let files = self.shared.files();
        let mut each = files.iter();
        each.try_for_each(|file| crate::verify::verify(&self.shared.store, file))
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
        self.shared.why_failed()
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
