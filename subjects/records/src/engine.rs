//! The engine: the interface for programs that embed it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::cache::PAGES_MIN;
use crate::checkpointer::Checkpointer;
use crate::definition::FileDefinition;
use crate::error::Fault;
use crate::options::EngineOptions;
use crate::recovery::{self, Recovered};
use crate::session::Session;
use crate::shared::Shared;
use crate::statistics::Statistics;
use crate::status::Status;
use crate::storage::{Folder, Storage};

/// An open engine. Dropping it loses nothing, but the next start must recover from the log;
/// [`Engine::close`] avoids that.
pub struct Engine {
    shared: Arc<Shared>,
    /// `None`: one of the processes that share the engine starts one.
    checkpointer: Option<Checkpointer>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        let options = &self.shared.options;
        out.debug_tuple("Engine").field(options).finish()
    }
}

impl Engine {
    /// Opens or creates an engine in a folder, and recovers after a crash.
    ///
    /// # Errors
    /// If the folder is used by another engine, is damaged, or cannot be read or written.
    pub fn open(folder: &Path, options: EngineOptions) -> Result<(Self, Recovered), Fault> {
        Self::open_in(Arc::new(Folder::open(folder)?), options)
    }

    /// The same in another kind of storage.
    pub fn open_in(
        storage: Arc<dyn Storage>,
        options: EngineOptions,
    ) -> Result<(Self, Recovered), Fault> {
        let (mut engine, recovered) = Self::open_shared_in(storage, options)?;
        engine.checkpointer = Some(engine.start_checkpointer()?);
        Ok((engine, recovered))
    }

    /// Opens an engine in shared memory, for processes that will be forked. Starts no thread: one
    /// of the processes calls [`Engine::start_checkpointer`].
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_shared(folder: &Path, options: EngineOptions) -> Result<(Self, Recovered), Fault> {
        Self::open_shared_in(Arc::new(Folder::open(folder)?), options)
    }

    /// The same in another kind of storage.
    pub fn open_shared_in(
        storage: Arc<dyn Storage>,
        options: EngineOptions,
    ) -> Result<(Self, Recovered), Fault> {
        if options.cache_pages < PAGES_MIN {
            let pages = options.cache_pages;
            let text =
                format!("a cache of {pages} pages is too small: give it {PAGES_MIN} or more");
            return Err(Fault::Definition(text));
        }
        let (shared, recovered) = recovery::open(storage, options)?;
        let engine = Self {
            shared: Arc::new(shared),
            checkpointer: None,
        };
        Ok((engine, recovered))
    }

    /// Starts the thread that makes checkpoints until it is dropped: for an engine that was opened
    /// to be shared, in one of the processes.
    ///
    /// # Errors
    /// If the system does not start it.
    pub fn start_checkpointer(&self) -> Result<Checkpointer, Fault> {
        Checkpointer::start(&self.shared)
    }

    /// Ends the sessions of an engine's process that has died holding no latch: undoes what they
    /// had not committed, and releases their locks.
    ///
    /// `engine` is its number, as [`concurve_latch::set_engine_of_process`] set it. To be called by
    /// the successor before it makes sessions of its own.
    pub fn end_sessions_of(&self, engine: u32) {
        self.shared.end_sessions_of(engine);
    }

    /// Creates a file of records.
    ///
    /// # Errors
    /// If there is one of this name, or the definition is invalid; or if the disk fails: then the engine
    /// has stopped, and whether the file exists is known after the next start.
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

    /// A new session, for one client. Each thread needs its own.
    pub fn session(&self) -> Session {
        Session::new(Arc::clone(&self.shared))
    }

    /// Writes all changed pages, and truncates the log.
    ///
    /// # Errors
    /// If the disk fails; then the engine has stopped.
    pub fn checkpoint(&self) -> Result<(), Fault> {
        let done = self.shared.checkpoint();
        done.map_err(|fault| self.shared.stopped_by(fault))
    }

    /// Does what the checkpointer would do now, if anything: for a program of one thread, without one.
    ///
    /// # Errors
    /// As [`Engine::checkpoint`].
    pub fn do_due_work(&self) -> Result<(), Fault> {
        let done = self.shared.do_due_work();
        done.map_err(|fault| self.shared.stopped_by(fault))
    }

    /// Checks every record and every key. To be called while no transaction runs.
    ///
    /// # Errors
    /// If something is inconsistent: what, and where.
    pub fn verify(&self) -> Result<(), Fault> {
        let files = self.shared.files();
        let mut each = files.iter();
        each.try_for_each(|file| crate::verify::verify(&self.shared.store, file))
    }

    /// Counts since the engine was opened.
    pub fn statistics(&self) -> Statistics {
        let shared = &self.shared;
        let (cache_hits, cache_misses) = shared.store.cache.hits_and_misses();
        let of_sessions = shared.sessions.statistics();
        Statistics {
            log_syncs: shared.store.log.syncs(),
            log_bytes: shared.store.log.bytes_written(),
            cache_hits: cache_hits + of_sessions.cache_hits,
            cache_misses,
            checkpoints: shared.checkpoints.made.load(Relaxed),
            ..of_sessions
        }
    }

    /// How many pages are in the cache, and how many it can hold.
    pub fn cached_pages(&self) -> (usize, usize) {
        self.shared.store.cache.pages_and_room()
    }

    /// The number of locks that are held or waited for.
    pub fn locks(&self) -> usize {
        self.shared.locks.count()
    }

    /// The number of sessions that wait for locks.
    pub fn waiting(&self) -> usize {
        self.shared.locks.waiting()
    }

    /// Why the engine cannot continue, if it cannot. Then every operation fails with the status of
    /// it.
    pub fn failure(&self) -> Option<String> {
        self.shared.why_failed()
    }

    /// Has this called once the engine cannot continue: by whichever thread or process has met the fault, also
    /// by that of the checkpoints, while latches may be held. It may be called several times. Only the first
    /// function counts: of processes that share the engine, each may pass the same.
    pub fn when_stopped(&self, call: impl Fn() + Send + Sync + 'static) {
        self.shared.when_stopped(call);
    }

    /// Ends the engine with a checkpoint. Operations of remaining sessions fail.
    pub fn close(mut self) -> Result<(), Fault> {
        self.checkpointer = None;
        self.shared.checkpoint()?;
        self.shared
            .fail(Fault::Stopped("it was closed".to_owned(), Status::Io));
        Ok(())
    }
}
