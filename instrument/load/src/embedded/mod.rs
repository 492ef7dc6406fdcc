//! Engines that run in the client's own process. A session is a thread that calls the engine, and
//! waits for it; everything else is as with a server.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use crate::desk::Desks;
use crate::workload::tpcb::dialect::Dialect;
use crate::workload::tpcb::{self, sql};
use crate::workload::{Answer, Numbers, Workload};

mod client;
pub mod lmdb;
mod query;
pub mod records;
pub mod sqlite;
mod words;

pub use client::run;

/// What to try where an embedded engine has no data.
const INIT_REMEDY: &str = "is it the right folder? --init makes the data of a workload";

/// An engine as its address names it, with the statements of a workload. Nothing is opened yet.
pub trait Embedded: Debug + Send + Sync {
    /// The engine, where its data is, and its settings, as an address.
    fn place(&self) -> String;

    /// Why sessions cannot be processes of their own, if they cannot.
    fn refuses_processes(&self) -> Option<&'static str>;

    /// Opens the engine, once for all sessions of this process.
    ///
    /// # Errors
    /// There is no data, it is not this engine's, or a statement is not in its language.
    fn open(&self) -> Result<Arc<dyn Engine>, EngineError>;
}

/// An engine that is open.
pub trait Engine: Debug + Send + Sync {
    /// Opens a session on the calling thread, and ends it when `life` is over.
    ///
    /// # Errors
    /// The engine takes no more sessions, or not this one.
    fn session(
        &self,
        number: u64,
        life: &mut dyn FnMut(&mut dyn EngineSession),
    ) -> Result<(), EngineError>;

    /// Closes it, when all sessions have ended.
    ///
    /// # Errors
    /// What was done may not be on the disk.
    fn close(&self) -> Result<(), EngineError> {
        Ok(())
    }
}

/// A session of an engine.
pub trait EngineSession {
    /// Executes some of the workload's statements with the numbers of a transaction: a round trip.
    /// The answer is that to the last, or the first error: then the rest is not executed, and no
    /// transaction is open any more.
    fn execute(&mut self, statements: Range<usize>, numbers: &Numbers) -> Answer;

    /// How often another session was in the way so far, and this one waited, if the engine tells.
    fn waits(&self) -> u64 {
        0
    }
}

/// What an engine cannot do, and what to try.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {why}; {remedy}")]
pub struct EngineError {
    pub place: String,
    pub why: String,
    pub remedy: &'static str,
}

/// An engine's name and settings, as the command line has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Records(records::Address),
    Lmdb(lmdb::Address),
    Sqlite(sqlite::Address),
}

/// Schemes of addresses, with what may follow.
pub fn forms() -> String {
    [records::FORMS, sqlite::FORMS, lmdb::FORMS].join(" or ")
}

impl Address {
    /// Reads `SCHEME:REST`; none if the scheme is not an engine's.
    ///
    /// # Errors
    /// What follows the scheme cannot be used.
    pub fn parse(text: &str) -> Option<Result<Self, String>> {
        let (scheme, rest) = text.split_once(':')?;
        match scheme {
            "records" if !rest.starts_with("//") => {
                Some(records::Address::parse(rest).map(Self::Records))
            }
            "sqlite" => Some(sqlite::Address::parse(rest).map(Self::Sqlite)),
            "lmdb" => Some(lmdb::Address::parse(rest).map(Self::Lmdb)),
            _ => None,
        }
    }

    /// How TPC-B is said to it.
    pub fn dialect(&self) -> &'static dyn Dialect {
        match self {
            Self::Records(_) | Self::Lmdb(_) => &tpcb::records::RECORDS,
            Self::Sqlite(_) => &sql::SQLITE,
        }
    }

    /// How to get there for what comes before a load and after it.
    pub fn desks(&self) -> Arc<dyn Desks> {
        match self {
            Self::Records(address) => Arc::new(address.clone()),
            Self::Sqlite(address) => Arc::new(address.clone()),
            Self::Lmdb(address) => Arc::new(address.clone()),
        }
    }

    /// The engine for the statements of a workload.
    pub fn engine(self, workload: &dyn Workload) -> Arc<dyn Embedded> {
        match self {
            Self::Records(address) => Arc::new(records::Records::new(address, workload)),
            Self::Sqlite(address) => Arc::new(sqlite::Sqlite::new(address, workload)),
            Self::Lmdb(address) => Arc::new(lmdb::Lmdb::new(address, workload)),
        }
    }
}
