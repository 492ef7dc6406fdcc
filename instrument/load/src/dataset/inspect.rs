//! Inspects the location of a dataset.

use std::sync::Arc;

use super::definition::Dataset;
use crate::admin::{AdminConnection, AdminError};

/// What was found there.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    Nothing,
    /// Data that another program has created.
    Foreign,
    /// Made by another version of this program, with this format.
    OtherFormat(i64),
    /// Its creation was interrupted.
    Incomplete,
    /// Complete, with these metadata.
    Made(Vec<i64>),
}

/// Why a load does not begin.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Refusal {
    #[error("there is no data yet ({0}): --init makes it, for {1}")]
    Missing(&'static str, String),
    #[error(
        "the data there ({0}) was not made by {program}, and --init does not replace it; name another database or file in the address, or rename it",
        program = crate::called::program()
    )]
    Foreign(&'static str),
    #[error("the data ({0}) was made by another version (format {1}): --init makes it anew")]
    OtherFormat(&'static str, i64),
    #[error("the data ({0}) is incomplete: --init makes it anew")]
    Incomplete(&'static str),
    #[error("the data ({location}) is for {found}, and not for {needed}")]
    Different {
        location: &'static str,
        found: String,
        needed: String,
        /// The options that use it.
        usable: String,
    },
}

impl Found {
    /// Inspects the location, and changes nothing.
    pub fn at(
        connection: &mut dyn AdminConnection,
        dataset: &dyn Dataset,
    ) -> Result<Self, AdminError> {
        let mut count = |statement: &str| {
            let counted = connection.execute(statement);
            counted.map(Option::unwrap_or_default)
        };
        if count(&dataset.count_objects())? == 0 {
            return Ok(Self::Nothing);
        }
        if count(&dataset.count_metadata_tables())? == 0 {
            return Ok(Self::Foreign);
        }
        // A table of the same name that another program has created has other columns or rows.
        match connection.execute(&dataset.read_metadata("format")) {
            Ok(Some(format)) if format == dataset.format() => {}
            Ok(Some(other)) if other > 0 => return Ok(Self::OtherFormat(other)),
            Ok(_) | Err(AdminError::Refused(..)) => return Ok(Self::Foreign),
            Err(error) => return Err(error),
        }
        let mut metadata = Vec::new();
        for name in dataset.metadata_names() {
            metadata.extend(connection.execute(&dataset.read_metadata(name))?);
        }
        let is_complete = metadata.len() == dataset.metadata_names().len();
        match is_complete && dataset.described_by(&metadata).is_some() {
            true => Ok(Self::Made(metadata)),
            false => Ok(Self::Incomplete),
        }
    }

    /// The dataset that was found, if it is what is needed.
    pub fn expect(self, needed: &dyn Dataset) -> Result<Arc<dyn Dataset>, Refusal> {
        let location = needed.location();
        match self {
            Self::Made(metadata) => match needed.described_by(&metadata) {
                None => Err(Refusal::Incomplete(location)),
                Some(found) if needed.is_served_by(&metadata) => Ok(found),
                Some(found) => Err(Refusal::Different {
                    location,
                    found: found.options(),
                    needed: needed.options(),
                    usable: needed.options_for(&metadata).unwrap_or_default(),
                }),
            },
            Self::Nothing => Err(Refusal::Missing(location, needed.options())),
            Self::Foreign => Err(Refusal::Foreign(location)),
            Self::OtherFormat(format) => Err(Refusal::OtherFormat(location, format)),
            Self::Incomplete => Err(Refusal::Incomplete(location)),
        }
    }

    /// Whether data of this program must be dropped before new data is created.
    pub fn may_be_replaced(self, location: &'static str) -> Result<bool, Refusal> {
        match self {
            Self::Foreign => Err(Refusal::Foreign(location)),
            Self::Nothing => Ok(false),
            Self::OtherFormat(_) | Self::Incomplete | Self::Made(_) => Ok(true),
        }
    }
}
