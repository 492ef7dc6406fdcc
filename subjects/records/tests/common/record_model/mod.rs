//! Compares the engine with a simple model, with several sessions that never wait. If the engine
//! refuses an operation because of a lock, another session must have locks, and nothing may have
//! changed.

mod client;
mod model;
mod steps;

use std::path::{Path, PathBuf};

use concurve_engines::Mode;
use concurve_records::{
    Durability, Engine, EngineOptions, Fault, Latching, LockBias, Recovered, Status,
};
use tempfile::TempDir;

use crate::schedule::Compared;
use client::{Client, definition};
use model::Model;
use steps::Read;
pub use steps::{Step, step};

/// One for each engine.
pub const SESSIONS: usize = 3;

/// A way to open an engine.
type Open = fn(&Path, EngineOptions) -> Result<(Engine, Recovered), Fault>;

/// The folder and the options of an engine.
pub struct Case {
    folder: TempDir,
    options: EngineOptions,
    restarts: bool,
}

impl Case {
    /// With `restarts`, the engine is restarted before the last comparison.
    pub fn new(latching: Latching, restarts: bool) -> Self {
        let options = EngineOptions {
            latching,
            durability: Durability::None,
            // Small, so that pages are evicted, and there are many checkpoints.
            cache_pages: 64,
            checkpoint_bytes: 1 << 16,
            checkpoint_stretch: 4,
        };
        Self {
            folder: tempfile::tempdir().unwrap(),
            options,
            restarts,
        }
    }

    pub fn open(&self, open: Open) -> EngineAndModel {
        let (engine, _) = open(self.folder.path(), self.options.clone()).unwrap();
        engine.create_file("file", &definition()).unwrap();
        let restart = (self.folder.path().to_owned(), self.options.clone());
        EngineAndModel {
            engine,
            model: Model::default(),
            clients: Default::default(),
            restart: self.restarts.then_some(restart),
        }
    }
}

/// An engine and its model.
pub struct EngineAndModel {
    engine: Engine,
    model: Model,
    clients: [Option<Client>; SESSIONS],
    restart: Option<(PathBuf, EngineOptions)>,
}

impl Compared for EngineAndModel {
    type Step = Step;

    fn step(&mut self, engine: u32, step: &Step) {
        let session = engine as usize - 1;
        // Created by the engine to which the session belongs.
        let client = self.clients[session].get_or_insert_with(|| Client::new(&self.engine));
        let done = client.step(&self.engine, step);
        if done.is_err_and(is_in_use) {
            assert!(
                self.model.others_may_have_locks(session),
                "in use by no session"
            );
            return;
        }
        let expected = self.model.step(client, session, step);
        assert_eq!(done, expected);
    }

    fn engine_died(&mut self, engine: u32, died_as: Mode) {
        let session = engine as usize - 1;
        let client = self.clients[session].take();
        match died_as {
            Mode::Threads => drop(client),
            Mode::Processes => {
                // Values of a killed process are never dropped.
                std::mem::forget(client);
                self.engine.end_sessions_of(engine);
            }
        }
        self.model.end_session(session);
    }

    fn end(mut self) {
        for session in 0..SESSIONS {
            self.model.end_session(session);
        }
        let Some((folder, options)) = self.restart else {
            drop(self.clients);
            assert_eq!(self.engine.locks(), 0);
            return compare(&self.engine, &self.model);
        };
        // The next start undoes the running transactions.
        std::mem::forget(self.clients);
        drop(self.engine);
        let copy = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
        let (engine, _) = Engine::open_shared(copy.path(), options).unwrap();
        compare(&engine, &self.model);
    }
}

fn is_in_use(status: Status) -> bool {
    matches!(status, Status::RecordInUse | Status::FileInUse)
}

fn compare(engine: &Engine, model: &Model) {
    engine.verify().unwrap();
    let mut client = Client::new(engine);
    for key in 0..2 {
        let mut entries: Vec<_> = model.records.iter().collect();
        entries.sort_by_key(|(position, record)| (record[key], **position));
        let mut read = Read::First(key);
        for (_, record) in entries {
            assert_eq!(client.get(read, LockBias::None), Ok(*record));
            read = Read::Next;
        }
        assert_eq!(client.get(read, LockBias::None), Err(Status::EndOfFile));
    }
}
