//! What a load records of its transactions, so that the data can be verified afterwards: also by
//! another process, and after the server was killed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::definition::Dataset;

/// Longest ledger.
const BYTES_MAX: u64 = 1 << 20;

/// More transactions than a load counts.
const COUNT_MAX: u64 = 1 << 53;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// The options that ask for the dataset.
    data: String,
    /// Transactions that the data contained before; `None` if they leave no trace.
    before: Option<i64>,
    /// Known when the load has ended.
    pub counts: Option<Counts>,
}

/// What a load has counted of its transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    pub acknowledged: u64,
    pub in_doubt: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error("--ledger {0}: cannot be written: {1}; name another file, or free disk space")]
    Write(PathBuf, #[source] io::Error),
    #[error("--ledger {0}: {1}; a load with the same --ledger writes it")]
    Read(PathBuf, String),
    #[error(
        "--ledger {0}: the load that began it has not noted its end (it still runs, failed, or was killed), so nothing can be compared; wait for its end, put on a load with the same --ledger again, or leave --ledger out to check the data alone"
    )]
    NotEnded(PathBuf),
    #[error("--ledger {0}: is the ledger of {1}, and this load is {2}")]
    Other(PathBuf, String, String),
}

impl Ledger {
    pub fn begin(dataset: &dyn Dataset, before: Option<i64>) -> Self {
        Self {
            data: dataset.options(),
            before,
            counts: None,
        }
    }

    pub fn end(&mut self, acknowledged: u64, in_doubt: u64) {
        self.counts = Some(Counts {
            acknowledged,
            in_doubt,
        });
    }

    /// Whether sums of its counts could not be formed.
    fn counts_too_much(&self) -> bool {
        let counts = self.counts.unwrap_or(Counts {
            acknowledged: 0,
            in_doubt: 0,
        });
        let before = self.before.unwrap_or_default().unsigned_abs();
        [before, counts.acknowledged, counts.in_doubt]
            .iter()
            .any(|it| *it > COUNT_MAX)
    }

    /// The counts of the load, and the transactions before it; `None` if one of them is missing.
    pub fn to_compare(&self) -> Option<(Counts, i64)> {
        self.counts.zip(self.before)
    }

    /// Writes it atomically: completely or not at all.
    pub fn write(&self, path: &Path) -> Result<(), LedgerError> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".part");
        let text = serde_json::to_string_pretty(self).expect("texts and numbers are JSON");
        let write = || {
            let mut file = concurve_files::create(temporary.as_ref())?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&temporary, path)
        };
        write().map_err(|error| LedgerError::Write(path.to_owned(), error))
    }

    /// Reads what a load of this dataset has written at its end.
    ///
    /// # Errors
    /// It is none, of another dataset, or of a load that has not ended: without its counts data from which
    /// transactions are lost would pass.
    pub fn read_ended(path: &Path, dataset: &dyn Dataset) -> Result<Self, LedgerError> {
        let ledger = Self::read(path, dataset)?;
        match (ledger.before, ledger.counts) {
            (Some(_), None) => Err(LedgerError::NotEnded(path.to_owned())),
            _ => Ok(ledger),
        }
    }

    /// Reads what a load of this dataset has written.
    pub fn read(path: &Path, dataset: &dyn Dataset) -> Result<Self, LedgerError> {
        let wrong = |why: String| LedgerError::Read(path.to_owned(), why);
        let text = concurve_files::read_named_text(path, BYTES_MAX);
        let text = text.map_err(|it| wrong(it.to_string()))?;
        let ledger: Self = serde_json::from_str(&text).map_err(|it| wrong(it.to_string()))?;
        if ledger.counts_too_much() {
            return Err(wrong("it counts more than a load can do".to_owned()));
        }
        if ledger.data != dataset.options() {
            let path = path.to_owned();
            return Err(LedgerError::Other(path, ledger.data, dataset.options()));
        }
        Ok(ledger)
    }
}
