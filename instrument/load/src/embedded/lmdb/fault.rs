//! What can go wrong with LMDB.

use std::io::ErrorKind;

use concurve_records::Status;
use concurve_records::command::Refusal;
use heed::MdbError;

/// A status of the record service, or an error of LMDB.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("LMDB: {0}")]
    Lmdb(heed::Error),
    #[error("there is no file {0:?}")]
    NoFile(String),
    #[error("{0:?} is nothing that is done on LMDB here")]
    NotHere(String),
}

impl From<Status> for Fault {
    fn from(status: Status) -> Self {
        Self::Refused(status.into())
    }
}

impl From<heed::Error> for Fault {
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

impl Fault {
    /// Its kind, in a word or a few.
    pub fn word(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.word().to_owned(),
            other => other.to_string(),
        }
    }

    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NoFile(_) | Self::Refused(_) => "--init makes the data of a workload",
            Self::NotHere(_) => "take a workload of a database",
            Self::Lmdb(heed::Error::Io(_)) => "is the folder there? --init makes it",
            Self::Lmdb(heed::Error::Mdb(MdbError::Invalid | MdbError::VersionMismatch)) => {
                "name a folder of this LMDB's, or one that is not there"
            }
            Self::Lmdb(_) => "does another program use it with other settings?",
        }
    }
}
