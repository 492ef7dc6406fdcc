//! The data of a profile in a database: a bank.

use std::sync::Arc;

use super::dialect::{Dialect, FORMAT};
use super::profile::{ACCOUNTS, BankData, Profile};
use crate::dataset::{Check, Dataset};

/// The data of a profile, and the dialect of the database that holds it.
#[derive(Debug, Clone, Copy)]
pub struct Bank {
    pub data: BankData,
    pub dialect: &'static dyn Dialect,
}

impl Dataset for Bank {
    fn options(&self) -> String {
        format!("--workload {} {}", self.data.profile.name(), self.size())
    }

    fn size(&self) -> String {
        let BankData {
            scale,
            accounts,
            files,
            ..
        } = self.data;
        let accounts = match accounts {
            ACCOUNTS => String::new(),
            fewer => format!(" --accounts {fewer}"),
        };
        format!("--scale {scale}{accounts} --files {files}")
    }

    fn location(&self) -> &'static str {
        self.dialect.location()
    }

    fn format(&self) -> i64 {
        FORMAT
    }

    fn count_objects(&self) -> String {
        self.dialect.count_objects()
    }

    fn count_metadata_tables(&self) -> String {
        self.dialect.count_metadata_tables()
    }

    fn read_metadata(&self, name: &str) -> String {
        self.dialect.read_metadata(name)
    }

    fn metadata_names(&self) -> &'static [&'static str] {
        &["workload", "scale", "accounts", "files"]
    }

    fn described_by(&self, metadata: &[i64]) -> Option<Arc<dyn Dataset>> {
        let data = data(metadata)?;
        Some(Arc::new(Self { data, ..*self }))
    }

    fn is_served_by(&self, metadata: &[i64]) -> bool {
        data(metadata).is_some_and(|it| it.serves(&self.data))
    }

    fn options_for(&self, metadata: &[i64]) -> Option<String> {
        let found = data(metadata)?;
        let asked = BankData {
            profile: self.data.profile,
            ..found
        };
        let data = if found.serves(&asked) { asked } else { found };
        Some(Self { data, ..*self }.options())
    }

    fn drop_all(&self) -> Box<dyn Iterator<Item = String> + Send> {
        self.dialect.drop_all()
    }

    fn make(&self) -> Box<dyn Iterator<Item = String> + Send> {
        self.dialect.make(self.data)
    }

    fn checks(&self) -> Vec<Check> {
        self.dialect.checks(self.data)
    }

    fn count_committed(&self) -> Vec<String> {
        self.dialect.count_committed(self.data)
    }
}

/// The data that metadata describe, if this version knows the profile.
fn data(metadata: &[i64]) -> Option<BankData> {
    let [code, scale, accounts, files] = *metadata else {
        return None;
    };
    Some(BankData {
        profile: Profile::ALL.into_iter().find(|it| it.code() == code)?,
        scale: scale.try_into().ok()?,
        accounts: accounts.try_into().ok()?,
        files: files.try_into().ok()?,
    })
}
