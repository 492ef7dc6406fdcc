//! The options of the workload.

use std::sync::Arc;

use super::bank::Bank;
use super::dialect::Dialect;
use super::profile::{ACCOUNTS, BankData, FILES_MAX, Profile, SCALE_MAX};
use super::workload::{RoundTrips, Tpcb};
use super::{records, sql, statements};
use crate::workload::{Language, Selection, WorkloadError};

/// The profile if no workload is named.
pub const DEFAULT: &str = "tpcb-rw3";

// Each option names its heading: one for the whole struct would also cover the options after it.
const HEADING: &str = "Databases (TPC-B)";

#[derive(Debug, clap::Args)]
pub struct TpcbOptions {
    /// Number of branches, each with 10 tellers [default: 1]
    #[arg(long, help_heading = HEADING, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(SCALE_MAX)))]
    scale: Option<u32>,
    /// Number of accounts of each branch; fewer than the standard's for small data [default:
    /// 100000]
    #[arg(long, help_heading = HEADING, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(ACCOUNTS)))]
    accounts: Option<u32>,
    /// Number of sets of the four files; each session uses one set [default: 1]
    #[arg(long, help_heading = HEADING, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(FILES_MAX)))]
    files: Option<u32>,
    /// A round trip for each statement of a transaction, or one for all of them [default: each]
    #[arg(
        long,
        help_heading = HEADING,
        value_enum,
        hide_possible_values = true,
        value_name = "each|one"
    )]
    round_trips: Option<RoundTrips>,
    /// Share of the transactions whose statements are new texts, which no cache contains [default:
    /// 0]
    #[arg(long, help_heading = HEADING, value_name = "0..1", value_parser = share)]
    new_statements: Option<f64>,
}

fn share(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|it| (0.0..=1.0).contains(it));
    number.ok_or_else(|| "it is a share from 0 to 1".to_owned())
}

/// The names of all profiles.
pub fn names() -> [&'static str; Profile::ALL.len()] {
    Profile::ALL.map(Profile::name)
}

/// How the workload is written in a language, if it can be.
fn dialect(language: Language) -> Option<&'static dyn Dialect> {
    match language {
        Language::KeyValue => None,
        Language::Records => Some(&records::RECORDS),
        Language::Statements => Some(&statements::STATEMENTS),
        Language::PostgreSql => Some(&sql::POSTGRES),
        Language::MySql => Some(&sql::MYSQL),
        Language::Sqlite => Some(&sql::SQLITE),
    }
}

impl TpcbOptions {
    /// The first of these options that is given.
    pub fn given(&self) -> Option<&'static str> {
        let all = [
            ("--scale", self.scale.is_some()),
            ("--accounts", self.accounts.is_some()),
            ("--files", self.files.is_some()),
            ("--round-trips", self.round_trips.is_some()),
            ("--new-statements", self.new_statements.is_some()),
        ];
        all.iter().find(|it| it.1).map(|it| it.0)
    }

    fn accounts(&self) -> u32 {
        self.accounts.unwrap_or(ACCOUNTS)
    }

    fn new_statements(&self) -> f64 {
        self.new_statements.unwrap_or(0.0)
    }

    /// The workload of the profile with this name; `None` if there is no such profile, or the
    /// language is not a database's.
    pub fn select(
        &self,
        name: &str,
        language: Language,
        pipeline: u32,
    ) -> Option<Result<Selection, WorkloadError>> {
        let profile = name.parse().ok()?;
        let dialect = dialect(language)?;
        let checked = self.check(profile, language, pipeline);
        Some(checked.and_then(|()| {
            let data = BankData {
                profile,
                scale: self.scale.unwrap_or(1),
                accounts: self.accounts(),
                files: self.files.unwrap_or(1),
            };
            let round_trips = self.round_trips.unwrap_or(RoundTrips::Each);
            let workload = Tpcb::new(data, dialect, round_trips, self.new_statements())?;
            Ok(Selection {
                workload: Arc::new(workload),
                prefill: None,
                dataset: Some(Arc::new(Bank { data, dialect })),
            })
        }))
    }

    fn check(
        &self,
        profile: Profile,
        language: Language,
        pipeline: u32,
    ) -> Result<(), WorkloadError> {
        let refused = |why: String| Err(WorkloadError::Options(why));
        if profile == Profile::Like && self.accounts() != ACCOUNTS {
            return refused(format!(
                "--accounts {}: {} is what pgbench does, with {ACCOUNTS} accounts; another workload, such as {}, may have fewer",
                self.accounts(),
                Profile::Like.name(),
                Profile::Strict.name()
            ));
        }
        if pipeline > 1 && profile.is_transaction() {
            return refused(format!(
                "--pipeline {pipeline}: a session has one transaction of {} at a time; --round-trips one sends its statements together",
                profile.name()
            ));
        }
        if self.new_statements() > 0.0 && !language.prepares() {
            return refused(format!(
                "--new-statements {}: nothing is prepared there; it is for statements://, postgresql:// and mysql://",
                self.new_statements()
            ));
        }
        Ok(())
    }
}
