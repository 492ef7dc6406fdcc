//! How the workload is said in a server's language.

use std::fmt::Debug;

use super::Data;

/// A step of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Begin,
    /// Reads a balance.
    Read(Table),
    /// Adds the delta to a balance.
    Update(Table),
    /// Reads a balance, then adds the delta to it.
    ReadUpdate(Table),
    /// A row in the history.
    Insert,
    End,
}

/// A file with balances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    Accounts,
    Tellers,
    Branches,
}

/// A question to the data, and the only right answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What must hold, in words.
    pub says: String,
    /// Answered with one number.
    pub statement: String,
    pub must_be: i64,
}

/// A language. All questions are answered with one number.
pub trait Dialect: Debug + Send + Sync {
    /// A step on a set of files (from 1), as one statement or several, with places for numbers:
    /// `{aid}`, `{tid}`, `{bid}`, `{delta}`, `{balance}` (what the last answer brought, and the
    /// delta), `{abid}`, `{tbid}` (the branch of the account, of the teller), `{time}` (µs since
    /// 1970).
    fn step(&self, step: Step, set: u32) -> Vec<String>;

    /// How the place of the data is called in messages.
    fn place(&self) -> &'static str;

    /// How many things stand at the place of the data, ours or not.
    fn occupied(&self) -> String;

    /// Whether the table of marks, which says that the data is ours, is among them.
    fn marked(&self) -> String;

    /// A mark: `format`, `workload`, `scale`, `accounts` or `files`. Without an answer if it is missing.
    fn mark(&self, name: &str) -> String;

    /// Takes away what is ours, complete or not.
    fn drop_all(&self) -> Box<dyn Iterator<Item = String> + Send>;

    /// Makes the data: the mark `format` first, the other marks last.
    fn make(&self, data: Data) -> Box<dyn Iterator<Item = String> + Send>;

    /// What must hold of data, whatever transactions were committed.
    fn checks(&self, data: Data) -> Vec<Check>;

    /// Questions whose answers add up to the number of transactions that were ever committed; none
    /// if they leave no trace.
    fn committed(&self, data: Data) -> Vec<String>;
}
