//! The definition of the data that a workload needs.

use std::fmt::Debug;
use std::sync::Arc;

/// A statement that checks the data, and its only correct answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The invariant, in words.
    pub claim: String,
    /// Answered with one number.
    pub statement: String,
    pub expected: i64,
}

/// The data that a workload needs, in the language of the database that holds it. Each question is
/// a statement that is answered with one number.
///
/// The data contain a metadata table, by which they are recognised: the version of their layout
/// (`format`), and numbers that say how they were made.
pub trait Dataset: Debug + Send + Sync {
    /// The options of the command line that ask for this data.
    fn options(&self) -> String;

    /// Those of the options that say how much data there is.
    fn size(&self) -> String;

    /// Where the data is in a database, as messages name it.
    fn location(&self) -> &'static str;

    /// Version of the layout that this program makes.
    fn format(&self) -> i64;

    /// Asks how many objects are at this location, including those of other programs.
    fn count_objects(&self) -> String;

    /// Asks how many metadata tables are among them: 1 if this program may have created the data.
    fn count_metadata_tables(&self) -> String;

    /// Asks for an entry of the metadata: `format`, or one of [`Self::metadata_names`]. No number
    /// is answered if it is missing.
    fn read_metadata(&self, name: &str) -> String;

    /// The entries beside `format`.
    fn metadata_names(&self) -> &'static [&'static str];

    /// The dataset that these metadata describe, in the order of [`Self::metadata_names`]; `None`
    /// if this version does not know it.
    fn described_by(&self, metadata: &[i64]) -> Option<Arc<dyn Dataset>>;

    /// Whether a workload that needs this dataset can use the one that these metadata describe.
    fn is_served_by(&self, metadata: &[i64]) -> bool;

    /// The options that use the data that these metadata describe: with the workload that they were made
    /// for, or with the one that needs this dataset, if data of that size serve it. `None` if this version
    /// does not know them.
    fn options_for(&self, metadata: &[i64]) -> Option<String> {
        self.described_by(metadata).map(|it| it.options())
    }

    /// Drops all data that this program has created, complete or not.
    fn drop_all(&self) -> Box<dyn Iterator<Item = String> + Send>;

    /// Makes the data: the metadata entry `format` first, the other entries last, so that data
    /// whose making was interrupted is recognised.
    fn make(&self) -> Box<dyn Iterator<Item = String> + Send>;

    /// The invariants of the data, which every committed transaction preserves.
    fn checks(&self) -> Vec<Check>;

    /// Questions whose answers add up to the number of transactions that were ever committed; empty
    /// if transactions leave no trace.
    fn count_committed(&self) -> Vec<String>;
}
