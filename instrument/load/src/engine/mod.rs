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

/// What an address of an engine is parsed to.
type Parsed = Result<NamedEngine, String>;

/// A kind of engine: its scheme, the form of its address, and what parses what follows the scheme.
struct Scheme {
    name: &'static str,
    form: &'static str,
    parse: fn(rest: &str) -> Parsed,
}

/// Each scheme, in the order in which messages list them.
const SCHEMES: [Scheme; 3] = [
    Scheme {
        name: "records",
        form: records::FORMS,
        parse: |rest| records::RecordsAddress::parse(rest).map(NamedEngine::Records),
    },
    Scheme {
        name: "sqlite",
        form: sqlite::FORMS,
        parse: |rest| sqlite::SqliteAddress::parse(rest).map(NamedEngine::Sqlite),
    },
    Scheme {
        name: "lmdb",
        form: lmdb::FORMS,
        parse: |rest| lmdb::LmdbAddress::parse(rest).map(NamedEngine::Lmdb),
    },
];

/// The schemes, for messages.
pub fn schemes() -> String {
    let shown = SCHEMES.map(|it| format!("{}:", it.name));
    let (last, others) = shown.split_last().expect("there are engines");
    format!("{} and {last}", others.join(", "))
}

/// The engine that an address names, with its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedEngine {
    Records(records::RecordsAddress),
    Lmdb(lmdb::LmdbAddress),
    Sqlite(sqlite::SqliteAddress),
}

/// Forms of addresses, for messages.
pub fn forms() -> String {
    SCHEMES.map(|it| it.form).join(" or ")
}

impl NamedEngine {
    /// Parses `SCHEME:REST`; `None` if the scheme is not an engine's.
    ///
    /// # Errors
    /// What follows the scheme cannot be used.
    pub fn parse(text: &str) -> Option<Parsed> {
        let (scheme, rest) = text.split_once(':')?;
        if scheme == "records" && rest.starts_with("//") {
            return None; // the same scheme with a host is a server's
        }
        let found = SCHEMES.iter().find(|it| it.name == scheme)?;
        Some((found.parse)(rest))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheme_is_listed() {
        assert_eq!(schemes(), "records:, sqlite: and lmdb:");
        assert_eq!(NamedEngine::parse("records://127.0.0.1:1"), None);
        for scheme in &SCHEMES {
            assert!(NamedEngine::parse(&format!("{}:x", scheme.name)).is_some());
        }
    }
}
