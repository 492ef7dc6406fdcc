//! LMDB, which executes the part of the record language that the workloads need: files of records,
//! each with one key.
//!
//! A file is a database of the environment. Only one transaction writes at a time: a read with a lock
//! begins a write transaction, which locks the whole environment.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::interface::{EmbeddedEngine, EngineError, EngineSession, INIT_REMEDY, OpenEngine};
use super::query::Query;
use super::record_language::tokens_by_set;
use crate::admin::{AdminAccess, AdminConnection, AdminError};
use crate::stop::Stop;
use crate::workload::{Answer, Parameters, Token, Workload};

mod admin;
mod error;
mod session;
mod statement;
mod store;

use admin::LmdbAdmin;
use error::LmdbError;
use session::Session;
use statement::Prepared;
use store::{Mode, Store};

pub const FORMS: &str = "lmdb:FOLDER?sync=full|off&map=read|write";

/// The name that LMDB gives to the file with the data.
const DATA: &str = "data.mdb";

/// The folder of an environment, and the settings of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LmdbAddress {
    folder: PathBuf,
    /// Whether a commit waits for the disk.
    sync: &'static str,
    /// Whether pages are changed in the map, or written to the file (`MDB_WRITEMAP`).
    map: &'static str,
}

impl LmdbAddress {
    /// Parses what follows `lmdb:`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut query = Query::parse(text)?;
        let sync = query.one_of("sync", &["full", "off"])?;
        let map = query.one_of("map", &["read", "write"])?;
        let folder = query.end()?;
        Ok(Self { folder, sync, map })
    }

    fn name(&self) -> String {
        let Self { folder, sync, map } = self;
        format!("lmdb:{}?sync={sync}&map={map}", folder.display())
    }

    fn mode(&self) -> Mode {
        Mode {
            syncs: self.sync == "full",
            writes_map: self.map == "write",
        }
    }

    /// Opens an environment that exists: LMDB would make one in any folder.
    fn open(&self, mode: Mode) -> Result<Store, EngineError> {
        if !self.folder.join(DATA).is_file() {
            return Err(EngineError {
                engine: self.name(),
                why: "there is no environment of LMDB in this folder".to_owned(),
                remedy: INIT_REMEDY,
            });
        }
        self.create(mode)
    }

    /// Opens it, or makes it if it does not exist.
    fn create(&self, mode: Mode) -> Result<Store, EngineError> {
        Store::open(&self.folder, mode).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &LmdbError) -> EngineError {
        EngineError {
            engine: self.name(),
            why: error.to_string(),
            remedy: error.remedy(),
        }
    }
}

impl AdminAccess for LmdbAddress {
    fn open(&self, create: bool, _stop: &Stop) -> Result<Box<dyn AdminConnection>, AdminError> {
        if create {
            std::fs::create_dir_all(&self.folder).map_err(|error| EngineError {
                engine: self.name(),
                why: error.to_string(),
                remedy: "name a folder that can be made",
            })?;
        }
        // The connection syncs when it is closed. With a writable map the file would get the size of
        // the whole map.
        let mode = Mode {
            syncs: false,
            writes_map: false,
        };
        let store = match create {
            true => self.create(mode)?,
            false => LmdbAddress::open(self, mode)?,
        };
        Ok(Box::new(LmdbAdmin(store)))
    }
}

/// An environment with the statements of a workload.
#[derive(Debug, Clone)]
pub struct LmdbEngine {
    address: LmdbAddress,
    /// By set.
    statements: Arc<[Vec<Vec<Token>>]>,
}

impl LmdbEngine {
    pub fn new(address: LmdbAddress, workload: &dyn Workload) -> Self {
        Self {
            address,
            statements: tokens_by_set(workload),
        }
    }
}

impl EmbeddedEngine for LmdbEngine {
    fn name(&self) -> String {
        self.address.name()
    }

    fn refuses_processes(&self) -> Option<&'static str> {
        None
    }

    fn open(&self) -> Result<Arc<dyn OpenEngine>, EngineError> {
        let failed = |error| self.address.failed(&error);
        let store = self.address.open(self.address.mode())?;
        for tokens in self.statements.iter().flatten() {
            Prepared::new(&store, tokens).map_err(failed)?;
        }
        Ok(Arc::new(Open {
            engine: self.clone(),
            store,
        }))
    }
}

#[derive(Debug)]
struct Open {
    engine: LmdbEngine,
    store: Store,
}

impl OpenEngine for Open {
    fn session(
        &self,
        number: u64,
        run: &mut dyn FnMut(&mut dyn EngineSession),
    ) -> Result<(), EngineError> {
        let sets = &self.engine.statements;
        let statements = &sets[number as usize % sets.len()];
        let prepared = statements.iter().map(|it| Prepared::new(&self.store, it));
        let prepared: Result<Vec<Prepared>, LmdbError> = prepared.collect();
        let mut session = PreparedSession {
            prepared: prepared.map_err(|it| self.engine.address.failed(&it))?,
            session: Session::new(&self.store),
        };
        run(&mut session);
        Ok(())
    }
}

/// A session with its statements.
struct PreparedSession<'a> {
    prepared: Vec<Prepared>,
    session: Session<'a>,
}

impl EngineSession for PreparedSession<'_> {
    fn execute(&mut self, statements: Range<usize>, parameters: &Parameters) -> Answer {
        let mut answer = Answer::Nothing;
        for prepared in &mut self.prepared[statements] {
            prepared.fill(parameters);
            match self.session.execute(prepared) {
                Ok(done) => answer = done,
                Err(error) => {
                    self.session.abort();
                    return Answer::Error(error.kind());
                }
            }
        }
        answer
    }
}
