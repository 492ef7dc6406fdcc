//! The options of databases: which data, and what is done with it.

use std::path::PathBuf;

use crate::data::Upkeep;
use crate::error::Error;
use crate::target::Target;
use crate::workload::tpcb::{ACCOUNTS, Data, FILES_MAX, Profile, RoundTrips, SCALE_MAX};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Databases (TPC-B)")]
pub struct Bank {
    /// Branches, each with 10 tellers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(SCALE_MAX)))]
    scale: u32,
    /// Accounts of each branch, fewer than the standard's for small data
    #[arg(long, value_name = "N", default_value_t = ACCOUNTS, value_parser = clap::value_parser!(u32).range(1..=i64::from(ACCOUNTS)))]
    accounts: u32,
    /// Sets of the four files; a session keeps to one of them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(FILES_MAX)))]
    files: u32,
    /// A round trip for each statement of a transaction, or one for all of them
    #[arg(
        long,
        value_enum,
        default_value = "each",
        hide_possible_values = true,
        value_name = "each|one"
    )]
    round_trips: RoundTrips,
    /// Share of the transactions whose statements are all texts that were never seen before
    #[arg(long, value_name = "0..1", default_value_t = 0.0, value_parser = share)]
    new_statements: f64,
    /// Make the data, in a schema of its own, also if it is there already
    #[arg(long)]
    init: bool,
    /// Make the data, and no load
    #[arg(long, conflicts_with_all = ["verify", "verify_only", "ledger"])]
    init_only: bool,
    /// Hold the data against what was counted, after the load
    #[arg(long, conflicts_with = "slo")]
    verify: bool,
    /// Hold the data against the --ledger of an earlier load, and no load
    #[arg(long, conflicts_with_all = ["init", "verify"])]
    verify_only: bool,
    /// Where the load notes what --verify-only must find
    #[arg(long, value_name = "FILE", conflicts_with = "slo")]
    ledger: Option<PathBuf>,
}

fn share(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|it| (0.0..=1.0).contains(it));
    number.ok_or_else(|| "it is a share from 0 to 1".to_owned())
}

impl Bank {
    /// What is done with the data beside the load.
    pub fn upkeep(&self) -> Upkeep {
        Upkeep {
            init: self.init || self.init_only,
            verify: self.verify,
            ledger: self.ledger.clone(),
        }
    }

    pub fn is_init_only(&self) -> bool {
        self.init_only
    }

    pub fn is_verify_only(&self) -> bool {
        self.verify_only
    }

    /// The data of a workload of this name.
    pub fn data(&self, name: &str) -> Result<Data, Error> {
        let profile = name.parse().map_err(|()| {
            let known = Profile::ALL.map(Profile::name).join(", ");
            Error::Asked(format!(
                "no workload {name:?} for a database; one of {known}, or commands of your own by --command"
            ))
        })?;
        if profile == Profile::Like && self.accounts != ACCOUNTS {
            return Err(Error::Asked(format!(
                "--accounts {}: {} is what pgbench does, with {ACCOUNTS} accounts; another workload, such as {}, may have fewer",
                self.accounts,
                Profile::Like.name(),
                Profile::Strict.name()
            )));
        }
        Ok(Data {
            profile,
            scale: self.scale,
            accounts: self.accounts,
            files: self.files,
        })
    }

    pub fn round_trips(&self) -> RoundTrips {
        self.round_trips
    }

    /// The share of new statements.
    pub fn new_statements(&self, target: &Target) -> Result<f64, Error> {
        if self.new_statements > 0.0 && !target.prepares() {
            return Err(Error::Asked(format!(
                "--new-statements {}: nothing is prepared there; it is for statements://, postgresql:// and mysql://",
                self.new_statements
            )));
        }
        Ok(self.new_statements)
    }

    /// Whether anything is to be done with data.
    pub fn keeps_any(&self) -> bool {
        self.upkeep() != Upkeep::default() || self.verify_only
    }
}
