//! The state of the statement service, which all sessions share.

use concurve_latch::Class;
use concurve_statements::{CacheOptions, Statements};

use super::catalogue::Catalogue;
use crate::error::Error;
use crate::records::RecordService;

/// The caches of statements and their plans, the catalogue, and the records below.
#[derive(Debug)]
pub struct StatementService {
    pub statements: Statements,
    pub catalogue: Catalogue,
    pub records: RecordService,
    /// The class of the section in which a plan is in use: if the engine dies in it, the plan and
    /// its pages are lost.
    pub(super) executing: Class,
}

impl StatementService {
    /// Reads the catalogue of the files.
    ///
    /// # Errors
    /// If the records cannot be read.
    pub fn open(caches: &CacheOptions, records: RecordService) -> Result<Self, Error> {
        let catalogue = Catalogue::open(&records.engine);
        Ok(Self {
            statements: Statements::new(caches),
            catalogue: catalogue.map_err(|fault| Error::RecordsStopped(fault.to_string()))?,
            records,
            executing: Class::named("statement in execution"),
        })
    }
}
