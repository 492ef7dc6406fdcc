//! The data that a workload stands on: inspected before a load, made if that is asked for, never
//! overwritten otherwise, and verified after it.

use std::path::PathBuf;
use std::sync::Arc;

use crate::desk::{Desk, DeskError, Desks};
use crate::error::Error;
use crate::progress::Line;
use crate::stop::Stop;
use crate::workload::tpcb::Data;
use crate::workload::tpcb::dialect::Dialect;

mod found;
mod ledger;
#[cfg(test)]
mod tests;
mod verify;

use found::Found;
pub use found::Refusal;
pub use ledger::{Ledger, LedgerError};
pub use verify::{Broken, Verified};

/// Which data is needed, how it is spoken about, and where.
#[derive(Debug)]
pub struct Ground {
    pub data: Data,
    pub dialect: &'static dyn Dialect,
    pub desks: Arc<dyn Desks>,
}

/// What is to be done with the data beside the load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Upkeep {
    pub init: bool,
    pub verify: bool,
    /// Where the load notes what must be found afterwards.
    pub ledger: Option<PathBuf>,
}

/// Data that is as it should be, while a load works on it.
pub struct Books<'a> {
    ground: &'a Ground,
    upkeep: &'a Upkeep,
    stop: &'a Stop,
    /// As its marks say.
    made: Data,
    ledger: Ledger,
}

#[derive(Debug, thiserror::Error)]
pub enum DataError {
    #[error(transparent)]
    Desk(#[from] DeskError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Broken(#[from] Broken),
}

impl Ground {
    /// Inspects the data, or makes it, and notes how many transactions it holds.
    ///
    /// # Errors
    /// It is not there, not ours, or not what the workload needs; or it cannot be made.
    pub fn prepare<'a>(&'a self, upkeep: &'a Upkeep, stop: &'a Stop) -> Result<Books<'a>, Error> {
        let mut desk = self.desks.open(upkeep.init, stop)?;
        let made = match upkeep.init {
            true => self.make(&mut *desk)?,
            false => self.inspect(&mut *desk)?,
        };
        let before = match upkeep.verify || upkeep.ledger.is_some() {
            true => verify::committed(&mut *desk, self.dialect, self.data)?,
            false => None,
        };
        let ledger = Ledger::begin(self.data, before);
        if let Some(path) = &upkeep.ledger {
            ledger.write(path).map_err(DataError::from)?;
        }
        Ok(Books {
            ground: self,
            upkeep,
            stop,
            made,
            ledger,
        })
    }

    /// Holds the data against what an earlier load has noted, if it has.
    ///
    /// # Errors
    /// Something does not hold.
    pub fn verify(&self, upkeep: &Upkeep, stop: &Stop) -> Result<Verified, Error> {
        let mut desk = self.desks.open(false, stop)?;
        let made = self.inspect(&mut *desk)?;
        let ledger = match &upkeep.ledger {
            Some(path) => Some(Ledger::read(path, self.data).map_err(DataError::from)?),
            None => None,
        };
        let dialect = self.dialect;
        Ok(verify::verify(&mut *desk, dialect, made, ledger.as_ref())?)
    }

    /// How much data there is, as it is asked for.
    pub fn size(&self) -> String {
        found::size(self.data)
    }

    fn inspect(&self, desk: &mut dyn Desk) -> Result<Data, DataError> {
        let found = Found::at(desk, self.dialect)?;
        Ok(found.expect(self.data, self.dialect)?)
    }

    /// Makes the data anew, unless what stands there is not ours.
    fn make(&self, desk: &mut dyn Desk) -> Result<Data, DataError> {
        let found = Found::at(desk, self.dialect)?;
        if found.may_be_replaced(self.dialect)? {
            for statement in self.dialect.drop_all() {
                desk.ask(&statement)?;
            }
        }
        let mut line = Line::on_terminal();
        for (number, statement) in (1..).zip(self.dialect.make(self.data)) {
            if let Some(line) = &mut line {
                line.note(&format!("making {}: statement {number}", self.size()));
            }
            desk.ask(&statement)?;
        }
        Ok(self.data)
    }
}

impl Books<'_> {
    /// Notes what the load has counted.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn note(&mut self, acknowledged: u64, in_doubt: u64) -> Result<(), Error> {
        self.ledger.end(acknowledged, in_doubt);
        if let Some(path) = &self.upkeep.ledger {
            self.ledger.write(path).map_err(DataError::from)?;
        }
        Ok(())
    }

    /// Holds the data against what was noted, if that is asked for.
    ///
    /// # Errors
    /// Something does not hold.
    pub fn verify(&self) -> Result<Option<Verified>, Error> {
        if !self.upkeep.verify {
            return Ok(None);
        }
        let mut desk = self.ground.desks.open(false, self.stop)?;
        let (dialect, ledger) = (self.ground.dialect, Some(&self.ledger));
        Ok(Some(verify::verify(
            &mut *desk, dialect, self.made, ledger,
        )?))
    }
}
