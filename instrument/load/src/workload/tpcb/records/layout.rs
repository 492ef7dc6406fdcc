//! How records stand in bytes: numbers are text of 12 characters.

use crate::workload::tpcb::dialect::Table;

/// Every file's name begins so.
pub const PREFIX: &str = "concurve_";
pub const NUMBER_BYTES: usize = 12;

/// A file with balances: numbers from the first byte on, the key before the others, and something
/// that makes the record as long as the standard wants it (clause 3.2).
pub struct Layout {
    pub file: &'static str,
    /// Names of the numbers before the balance.
    pub numbers: &'static [&'static str],
    pub record_bytes: usize,
}

impl Table {
    pub fn layout(self) -> Layout {
        let (file, numbers): (_, &[_]) = match self {
            Self::Accounts => ("accounts", &["aid", "abid"]),
            Self::Tellers => ("tellers", &["tid", "tbid"]),
            Self::Branches => ("branches", &["bid"]),
        };
        Layout {
            file,
            numbers,
            record_bytes: 100,
        }
    }
}

impl Layout {
    /// Where the balance is.
    pub fn balance(&self) -> usize {
        NUMBER_BYTES * self.numbers.len()
    }

    /// What makes a record as long as it is to be.
    pub fn filler(&self) -> String {
        "x".repeat(self.record_bytes - self.balance() - NUMBER_BYTES)
    }
}

/// Of the history: teller, branch, account, delta, time. It has no key, as in SQL.
pub const HISTORY_BYTES: usize = 5 * NUMBER_BYTES;
pub const TID: usize = 0;
pub const BID: usize = NUMBER_BYTES;
pub const DELTA: usize = 3 * NUMBER_BYTES;

/// The name of a file of a set.
pub fn name(file: &str, set: u32) -> String {
    format!("{PREFIX}{file}_{set}")
}
