//! The engine beside a model that is obviously right, with several sessions that never wait. Where the
//! engine says that something is in use, another session must have locks, and nothing may have
//! happened.

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
use steps::Asked;
pub use steps::{Step, step};

/// One for each engine.
pub const SESSIONS: usize = 3;

/// A way to open an engine.
type Open = fn(&Path, EngineOptions) -> Result<(Engine, Recovered), Fault>;

/// Where an engine has its files, and how it is opened.
pub struct Case {
    folder: TempDir,
    options: EngineOptions,
    restarts: bool,
}

impl Case {
    /// With `restarts`, it is compared after one.
    pub fn new(latching: Latching, restarts: bool) -> Self {
        let options = EngineOptions {
            latching,
            durability: Durability::None,
            // Small, so that pages are written for want of room, and checkpoints are many.
            cache_pages: 64,
            checkpoint_bytes: 1 << 16,
        };
        Self {
            folder: tempfile::tempdir().unwrap(),
            options,
            restarts,
        }
    }

    pub fn open(&self, open: Open) -> Beside {
        let (engine, _) = open(self.folder.path(), self.options.clone()).unwrap();
        engine.create_file("file", &definition()).unwrap();
        let restart = (self.folder.path().to_owned(), self.options.clone());
        Beside {
            engine,
            model: Model::default(),
            clients: Default::default(),
            restart: self.restarts.then_some(restart),
        }
    }
}

/// Both.
pub struct Beside {
    engine: Engine,
    model: Model,
    clients: [Option<Client>; SESSIONS],
    restart: Option<(PathBuf, EngineOptions)>,
}

impl Compared for Beside {
    type Step = Step;

    fn step(&mut self, engine: u32, step: &Step) {
        let session = engine as usize - 1;
        // By the engine whose session it is.
        let client = self.clients[session].get_or_insert_with(|| Client::new(&self.engine));
        let done = client.step(&self.engine, step);
        if done.is_err_and(is_in_use) {
            assert!(self.model.others_may_have_locks(session), "by nobody");
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
                // What a killed process had is never dropped.
                std::mem::forget(client);
                self.engine.end_sessions_of(engine);
            }
        }
        self.model.lose(session);
    }

    fn end(mut self) {
        for session in 0..SESSIONS {
            self.model.lose(session);
        }
        let Some((folder, options)) = self.restart else {
            drop(self.clients);
            assert_eq!(self.engine.locks(), 0);
            return compare(&self.engine, &self.model);
        };
        // What the sessions have not ended is undone by the next start.
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
        let mut asked = Asked::First(key);
        for (_, record) in entries {
            assert_eq!(client.get(asked, LockBias::None), Ok(*record));
            asked = Asked::Next;
        }
        assert_eq!(client.get(asked, LockBias::None), Err(Status::EndOfFile));
    }
}
