//! Errors of LMDB, and of statements that it executes.

use std::io::ErrorKind;

use concurve_records::Status;
use concurve_records::command::Refusal;
use heed::MdbError;

/// A status of the record service, or an error of LMDB.
#[derive(Debug, thiserror::Error)]
pub enum LmdbError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("LMDB: {0}")]
    Lmdb(heed::Error),
    #[error("there is no file {0:?}")]
    NoFile(String),
    #[error("{0:?} is not supported on LMDB")]
    Unsupported(String),
}

impl From<Status> for LmdbError {
    fn from(status: Status) -> Self {
        Self::Refused(status.into())
    }
}

impl From<heed::Error> for LmdbError {
    fn from(error: heed::Error) -> Self {
        match error {
            heed::Error::Mdb(MdbError::KeyExist) => Status::DuplicateKey.into(),
            heed::Error::Mdb(MdbError::MapFull) => Status::DiskFull.into(),
            heed::Error::Io(error) if error.kind() == ErrorKind::StorageFull => {
                Status::DiskFull.into()
            }
            other => Self::Lmdb(other),
        }
    }
}

impl LmdbError {
    /// Its kind, in a few words.
    pub fn kind(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.word().to_owned(),
            other => other.to_string(),
        }
    }

    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NoFile(_) | Self::Refused(_) => "--init makes the data of a workload",
            Self::Unsupported(_) => "take a workload of a database",
            Self::Lmdb(heed::Error::Io(_)) => "is the folder there? --init makes it",
            Self::Lmdb(heed::Error::Mdb(MdbError::Invalid | MdbError::VersionMismatch)) => {
                "name a folder with data of this version of LMDB, or a new folder"
            }
            Self::Lmdb(_) => "does another program use it with other settings?",
        }
    }
}
