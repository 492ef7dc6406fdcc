//! How the workload is written in a server's language.

use std::fmt::Debug;

use super::profile::{BankData, Step};
use crate::dataset::Check;

/// Version of the layout of the data; another number when tables or columns change.
pub const FORMAT: i64 = 1;

/// The name of every file begins so, in a language of files.
pub const PREFIX: &str = "concurve_";

/// Records that one `FILL` makes: other clients wait while it runs.
const FILL_MAX: i64 = 10_000;

/// The workload in a language. Each question is a statement that is answered with one number.
///
/// The methods that are given here are right for languages of files, which have the commands `FILES`
/// and `DROP`.
pub trait Dialect: Debug + Send + Sync {
    /// A step on a set of files (from 1), as one statement or several, with placeholders: `{aid}`,
    /// `{tid}`, `{bid}`, `{delta}`, `{balance}` (the number in the last answer, plus the delta),
    /// `{abid}`, `{tbid}` (the branch of the account, of the teller), `{time}` (µs since 1970),
    /// `{row}` (a number that no other transaction has).
    fn step(&self, step: Step, set: u32) -> Vec<String>;

    /// Where the data is in a database, as messages name it.
    fn location(&self) -> &'static str {
        "files concurve_…"
    }

    /// Asks how many objects are at this location, including those of other programs.
    fn count_objects(&self) -> String {
        format!("FILES {PREFIX}")
    }

    /// Asks how many metadata tables are among them: 1 if this program may have created the data.
    fn count_metadata_tables(&self) -> String {
        format!("FILES {PREFIX}marks")
    }

    /// Asks for an entry of the metadata: `format`, `workload`, `scale`, `accounts` or `files`. No
    /// number is answered if it is missing.
    fn read_metadata(&self, name: &str) -> String;

    /// Drops all data that this program has created, complete or not.
    fn drop_all(&self) -> Box<dyn Iterator<Item = String> + Send> {
        let files = [
            "history_*",
            "accounts_*",
            "tellers_*",
            "branches_*",
            "marks",
        ];
        Box::new(files.into_iter().map(|it| format!("DROP {PREFIX}{it}")))
    }

    /// Makes the data: the metadata entry `format` first, the other entries last.
    fn make(&self, data: BankData) -> Box<dyn Iterator<Item = String> + Send>;

    /// The invariants of the data, which every committed transaction preserves.
    fn checks(&self, data: BankData) -> Vec<Check>;

    /// Questions whose answers add up to the number of transactions that were ever committed; empty
    /// if transactions leave no trace.
    fn count_committed(&self, data: BankData) -> Vec<String>;
}

/// For languages with a `FILL` command: first and last number of the records that each statement
/// makes, of a branch (from 1) that has `each` of them.
pub fn fill_ranges(branch: i64, each: i64) -> impl Iterator<Item = (i64, i64)> {
    let (begin, end) = ((branch - 1) * each, branch * each);
    let firsts = (begin..end).step_by(FILL_MAX as usize);
    firsts.map(move |before| (before + 1, end.min(before + FILL_MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_a_branch_is_made_once() {
        let made: Vec<_> = fill_ranges(3, 12_500).collect();
        assert_eq!(made, [(25_001, 35_000), (35_001, 37_500)]);
        assert_eq!(fill_ranges(2, 10).collect::<Vec<_>>(), [(11, 20)]);
    }
}
