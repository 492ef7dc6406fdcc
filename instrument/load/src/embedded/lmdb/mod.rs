//! LMDB, in the words of the record service: files of records by a key each, of which LMDB keeps
//! what the workloads need.
//!
//! A file is a database of the environment. One transaction writes at a time, so a read with a lock
//! begins one, and what is locked is everything.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::query::Query;
use super::words::by_set;
use super::{Embedded, Engine, EngineError, EngineSession, INIT_REMEDY};
use crate::workload::words::Word;
use crate::workload::{Answer, Numbers, Workload};

mod desk;
mod fault;
mod session;
mod statement;
mod store;

use fault::Fault;
use session::Session;
use statement::Prepared;
use store::{Mode, Store};

pub const FORMS: &str = "lmdb:FOLDER?sync=full|off&map=read|write";

/// LMDB's name for it.
const DATA: &str = "data.mdb";

/// Where an environment is, and how it is to be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    folder: PathBuf,
    /// Whether a commit waits for the disk.
    sync: &'static str,
    /// Whether pages are changed in the map, or written to the file (`MDB_WRITEMAP`).
    map: &'static str,
}

impl Address {
    /// Reads what follows `lmdb:`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut query = Query::parse(text)?;
        let sync = query.one_of("sync", &["full", "off"])?;
        let map = query.one_of("map", &["read", "write"])?;
        let folder = query.end()?;
        Ok(Self { folder, sync, map })
    }

    fn place(&self) -> String {
        let Self { folder, sync, map } = self;
        format!("lmdb:{}?sync={sync}&map={map}", folder.display())
    }

    fn mode(&self) -> Mode {
        Mode {
            syncs: self.sync == "full",
            writes_map: self.map == "write",
        }
    }

    /// Opens an environment that is there: LMDB would make one anywhere.
    fn open(&self, mode: Mode) -> Result<Store, EngineError> {
        if !self.folder.join(DATA).is_file() {
            return Err(EngineError {
                place: self.place(),
                why: "there is no environment of LMDB in this folder".to_owned(),
                remedy: INIT_REMEDY,
            });
        }
        self.create(mode)
    }

    /// Opens it, or makes it if it is not there.
    fn create(&self, mode: Mode) -> Result<Store, EngineError> {
        Store::open(&self.folder, mode).map_err(|fault| self.failed(&fault))
    }

    fn failed(&self, fault: &Fault) -> EngineError {
        EngineError {
            place: self.place(),
            why: fault.to_string(),
            remedy: fault.remedy(),
        }
    }
}

/// An environment with the statements of a workload.
#[derive(Debug, Clone)]
pub struct Lmdb {
    address: Address,
    /// By set.
    statements: Arc<[Vec<Vec<Word>>]>,
}

impl Lmdb {
    pub fn new(address: Address, workload: &dyn Workload) -> Self {
        Self {
            address,
            statements: by_set(workload),
        }
    }
}

impl Embedded for Lmdb {
    fn place(&self) -> String {
        self.address.place()
    }

    fn refuses_processes(&self) -> Option<&'static str> {
        None
    }

    fn open(&self) -> Result<Arc<dyn Engine>, EngineError> {
        let failed = |fault| self.address.failed(&fault);
        let store = self.address.open(self.address.mode())?;
        for words in self.statements.iter().flatten() {
            Prepared::new(&store, words).map_err(failed)?;
        }
        Ok(Arc::new(Open {
            lmdb: self.clone(),
            store,
        }))
    }
}

#[derive(Debug)]
struct Open {
    lmdb: Lmdb,
    store: Store,
}

impl Engine for Open {
    fn session(
        &self,
        number: u64,
        life: &mut dyn FnMut(&mut dyn EngineSession),
    ) -> Result<(), EngineError> {
        let sets = &self.lmdb.statements;
        let statements = &sets[number as usize % sets.len()];
        let prepared = statements.iter().map(|it| Prepared::new(&self.store, it));
        let prepared: Result<Vec<Prepared>, Fault> = prepared.collect();
        let mut session = Loaded {
            prepared: prepared.map_err(|it| self.lmdb.address.failed(&it))?,
            session: Session::new(&self.store),
        };
        life(&mut session);
        Ok(())
    }
}

/// A session with its statements.
struct Loaded<'a> {
    prepared: Vec<Prepared>,
    session: Session<'a>,
}

impl EngineSession for Loaded<'_> {
    fn execute(&mut self, statements: Range<usize>, numbers: &Numbers) -> Answer {
        let mut answer = Answer::Nothing;
        for prepared in &mut self.prepared[statements] {
            prepared.fill(numbers);
            match self.session.execute(prepared) {
                Ok(done) => answer = done,
                Err(fault) => {
                    self.session.abort();
                    return Answer::Error(fault.word());
                }
            }
        }
        answer
    }
}
