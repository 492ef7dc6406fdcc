//! Engines that run in the client's own process: a folder or a file for each, with the form of its
//! address. A session is a thread that calls the engine and waits for it; everything else is as with a
//! server. This file lists the engines: it selects the one that an address names.

mod interface;
mod lmdb;
mod query;
mod record_language;
mod records;
mod sqlite;

use std::sync::Arc;

pub use interface::{EmbeddedEngine, EngineError, EngineSession, OpenEngine};

use crate::admin::AdminAccess;
use crate::workload::{Language, Workload};

/// Schemes of addresses, for messages.
pub const SCHEMES: &str = "records:, sqlite: and lmdb:";

/// The engine that an address names, with its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedEngine {
    Records(records::RecordsAddress),
    Lmdb(lmdb::LmdbAddress),
    Sqlite(sqlite::SqliteAddress),
}

/// Forms of addresses, for messages.
pub fn forms() -> String {
    [records::FORMS, sqlite::FORMS, lmdb::FORMS].join(" or ")
}

impl NamedEngine {
    /// Parses `SCHEME:REST`; `None` if the scheme is not an engine's.
    ///
    /// # Errors
    /// What follows the scheme cannot be used.
    pub fn parse(text: &str) -> Option<Result<Self, String>> {
        let (scheme, rest) = text.split_once(':')?;
        match scheme {
            "records" if !rest.starts_with("//") => {
                Some(records::RecordsAddress::parse(rest).map(Self::Records))
            }
            "sqlite" => Some(sqlite::SqliteAddress::parse(rest).map(Self::Sqlite)),
            "lmdb" => Some(lmdb::LmdbAddress::parse(rest).map(Self::Lmdb)),
            _ => None,
        }
    }

    /// What statements are written in.
    pub fn language(&self) -> Language {
        match self {
            Self::Records(_) | Self::Lmdb(_) => Language::Records,
            Self::Sqlite(_) => Language::Sqlite,
        }
    }

    /// Access for administrative connections.
    pub fn admin(&self) -> Arc<dyn AdminAccess> {
        match self {
            Self::Records(address) => Arc::new(address.clone()),
            Self::Sqlite(address) => Arc::new(address.clone()),
            Self::Lmdb(address) => Arc::new(address.clone()),
        }
    }

    /// The engine with the statements of a workload.
    pub fn engine(self, workload: &dyn Workload) -> Arc<dyn EmbeddedEngine> {
        match self {
            Self::Records(address) => Arc::new(records::RecordsEngine::new(address, workload)),
            Self::Sqlite(address) => Arc::new(sqlite::SqliteEngine::new(address, workload)),
            Self::Lmdb(address) => Arc::new(lmdb::LmdbEngine::new(address, workload)),
        }
    }
}
