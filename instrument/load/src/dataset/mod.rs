//! The data of a workload: inspected before a load, made if that is asked for, never overwritten
//! otherwise, and verified after it. A workload says what its data is ([`Dataset`]).

use std::path::PathBuf;
use std::sync::Arc;

use concurve_clock::monotonic_ns;

mod definition;
mod inspect;
mod ledger;
#[cfg(test)]
mod tests;
mod verify;

pub use definition::{Check, Dataset};
pub use verify::{Verified, VerifyError};

use crate::admin::{AdminAccess, AdminConnection, AdminError, execute_unless_stopped};
use crate::called;
use crate::output::tell;
use crate::stop::Stop;
use crate::terminal_line::TerminalLine;
use crate::units::time;
use inspect::{Found, Refusal};
use ledger::{Ledger, LedgerError};
use verify::{committed, verify};

/// What is done with the data beside the load.
#[derive(Debug, clap::Args)]
pub struct DatasetOptions {
    /// Create the data, in a schema of its own; replaces existing data of concurve-load
    #[arg(long)]
    init: bool,
    /// Create the data, and put on no load
    #[arg(long, conflicts_with_all = ["verify", "verify_only", "ledger"])]
    pub init_only: bool,
    /// After the load, verify the data: check invariants, and compare with the counted transactions
    #[arg(long, conflicts_with = "slo")]
    pub verify: bool,
    /// Verify the data with the --ledger of an earlier load, and put on no load
    #[arg(long, conflicts_with_all = ["init", "verify"])]
    pub verify_only: bool,
    /// File in which the load records its counts, for --verify-only
    #[arg(long, value_name = "FILE", conflicts_with = "slo")]
    ledger: Option<PathBuf>,
}

impl DatasetOptions {
    /// Whether anything is to be done with the data.
    pub fn is_any(&self) -> bool {
        self.makes_data() || self.verify || self.verify_only || self.ledger.is_some()
    }

    fn makes_data(&self) -> bool {
        self.init || self.init_only
    }
}

/// Why the data cannot be used, made or verified.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error("{0}{1}")]
    Refused(Box<Refusal>, Remedy),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Verify(#[from] VerifyError),
}

/// What to do, as the end of a message.
#[derive(Debug)]
pub enum Remedy {
    /// Nothing helps.
    None,
    /// The command that makes the data.
    Make(String),
    /// There is data of other options: the command that uses it, and the one that replaces it.
    Use { there: String, make: String },
}

impl std::fmt::Display for Remedy {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Make(command) => write!(
                out,
                "\n  try: {command} --init-only, then this command again"
            ),
            Self::Use { there, make } => write!(
                out,
                "\n  try: {there}, with your other options, to use the data that is there; or {make} --init-only, which replaces it: what it holds is lost"
            ),
        }
    }
}

/// A dataset, and how to reach the database that holds it.
#[derive(Debug)]
pub struct DatasetInDatabase {
    pub dataset: Arc<dyn Dataset>,
    pub admin: Arc<dyn AdminAccess>,
    /// The command line that names the database, without the options of a dataset.
    pub command: String,
}

/// A dataset that was inspected, while a load changes it.
pub struct DatasetUnderLoad<'a> {
    dataset: &'a DatasetInDatabase,
    options: &'a DatasetOptions,
    stop: &'a Stop,
    /// As the metadata describe it.
    found: Arc<dyn Dataset>,
    ledger: Ledger,
}

impl DatasetInDatabase {
    /// Inspects the data, or makes it, and counts the transactions that it contains.
    ///
    /// # Errors
    /// It is missing, was not created by this program, does not fit the workload, or cannot be
    /// created.
    pub fn prepare<'a>(
        &'a self,
        options: &'a DatasetOptions,
        stop: &'a Stop,
    ) -> Result<DatasetUnderLoad<'a>, DatasetError> {
        let mut connection = self.admin.open(options.makes_data(), stop)?;
        let found = match options.makes_data() {
            true => self.make(&mut *connection, stop)?,
            false => self.inspect(&mut *connection)?,
        };
        let before = match options.verify || options.ledger.is_some() {
            true => committed(&mut *connection, &*self.dataset, stop)?,
            false => None,
        };
        let ledger = Ledger::begin(&*self.dataset, before);
        if let Some(path) = &options.ledger {
            ledger.write(path)?;
        }
        Ok(DatasetUnderLoad {
            dataset: self,
            options,
            stop,
            found,
            ledger,
        })
    }

    /// Verifies the data without a load, by the ledger of an earlier one if there is one.
    ///
    /// # Errors
    /// Something does not hold.
    pub fn verify(&self, options: &DatasetOptions, stop: &Stop) -> Result<Verified, DatasetError> {
        let mut connection = self.admin.open(false, stop)?;
        let found = self.inspect(&mut *connection)?;
        let ledger = match &options.ledger {
            Some(path) => Some(Ledger::read_ended(path, &*self.dataset)?),
            None => None,
        };
        Ok(verify(&mut *connection, &*found, ledger.as_ref(), stop)?)
    }

    /// How much data there is, in the options that ask for it.
    pub fn size(&self) -> String {
        self.dataset.size()
    }

    fn inspect(
        &self,
        connection: &mut dyn AdminConnection,
    ) -> Result<Arc<dyn Dataset>, DatasetError> {
        let found = Found::at(connection, &*self.dataset)?;
        let expected = found.expect(&*self.dataset);
        expected.map_err(|refusal| self.refused(refusal))
    }

    fn refused(&self, refusal: Refusal) -> DatasetError {
        let make = format!("{} {}", self.command, self.dataset.options());
        let remedy = match &refusal {
            Refusal::Foreign(_) => Remedy::None,
            Refusal::Different { usable, .. } => Remedy::Use {
                there: format!("{} {usable}", self.command),
                make,
            },
            _ => Remedy::Make(make),
        };
        DatasetError::Refused(Box::new(refusal), remedy)
    }

    /// Creates the data, and replaces data that this program has created; refuses to replace
    /// others.
    fn make(
        &self,
        connection: &mut dyn AdminConnection,
        stop: &Stop,
    ) -> Result<Arc<dyn Dataset>, DatasetError> {
        let found = Found::at(connection, &*self.dataset)?;
        let replaces = found.may_be_replaced(self.dataset.location());
        if replaces.map_err(|refusal| self.refused(refusal))? {
            for statement in self.dataset.drop_all() {
                execute_unless_stopped(connection, &statement, stop)?;
            }
        }
        let begin_ns = monotonic_ns();
        let (program, size) = (called::program(), self.size());
        let mut line = TerminalLine::on_terminal();
        if line.is_none() {
            tell(&format!("{program}: making the data ({size})"));
        }
        for (number, statement) in (1..).zip(self.dataset.make()) {
            if let Some(line) = &mut line {
                line.show(&format!("making {size}: statement {number}"));
            }
            execute_unless_stopped(connection, &statement, stop)?;
        }
        drop(line);
        let taken = time((monotonic_ns() - begin_ns) as f64);
        tell(&format!("{program}: the data is made ({size}), in {taken}"));
        Ok(self.dataset.clone())
    }
}

impl DatasetUnderLoad<'_> {
    /// Records the counts of the load in the ledger.
    ///
    /// # Errors
    /// The ledger cannot be written.
    pub fn record(&mut self, acknowledged: u64, in_doubt: u64) -> Result<(), DatasetError> {
        self.ledger.end(acknowledged, in_doubt);
        if let Some(path) = &self.options.ledger {
            self.ledger.write(path)?;
        }
        Ok(())
    }

    /// Verifies the data by the ledger, if that is asked for.
    ///
    /// # Errors
    /// Something does not hold, or the run is stopped before all is verified.
    pub fn verify(&self) -> Result<Option<Verified>, DatasetError> {
        if !self.options.verify {
            return Ok(None);
        }
        let mut connection = self.dataset.admin.open(false, self.stop)?;
        let ledger = Some(&self.ledger);
        let verified = verify(&mut *connection, &*self.found, ledger, self.stop)?;
        Ok(Some(verified))
    }
}
