//! What a transaction does, and the data that it needs.

use std::str::FromStr;

/// Tellers of each branch.
pub const TELLERS: i64 = 10;
/// Accounts of each branch, by the standard.
pub const ACCOUNTS: u32 = 100_000;
/// Account numbers fit in 32 bits.
pub const SCALE_MAX: u32 = 20_000;
pub const FILES_MAX: u32 = 16;

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
    /// Inserts a row into the history.
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

/// The files with balances, in the order in which they are made.
pub const TABLES: [Table; 3] = [Table::Branches, Table::Tellers, Table::Accounts];

/// What a transaction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    Rw3,
    Strict,
    Like,
    Read,
    Update,
    Loop,
}

/// The data that a profile needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BankData {
    pub profile: Profile,
    /// Number of branches.
    pub scale: u32,
    /// Accounts of each branch.
    pub accounts: u32,
    /// Sets of four files; a session uses one of them.
    pub files: u32,
}

impl Profile {
    pub const ALL: [Self; 6] = [
        Self::Rw3,
        Self::Strict,
        Self::Like,
        Self::Read,
        Self::Update,
        Self::Loop,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Rw3 => "tpcb-rw3",
            Self::Strict => "tpcb-strict",
            Self::Like => "tpcb-like",
            Self::Read => "read",
            Self::Update => "update",
            Self::Loop => "loop",
        }
    }

    /// Its number in the metadata of stored data. Never changed.
    pub fn code(self) -> i64 {
        match self {
            Self::Rw3 => 1,
            Self::Strict => 2,
            Self::Like => 3,
            Self::Read => 4,
            Self::Update => 5,
            Self::Loop => 6,
        }
    }

    pub fn steps(self) -> Vec<Step> {
        use Step::{Begin, End, Insert, Read, ReadUpdate, Update};
        use Table::{Accounts, Branches, Tellers};
        match self {
            Self::Rw3 => vec![
                Begin,
                ReadUpdate(Accounts),
                ReadUpdate(Tellers),
                ReadUpdate(Branches),
                Insert,
                End,
            ],
            Self::Strict | Self::Like => vec![
                Begin,
                Update(Accounts),
                Read(Accounts),
                Update(Tellers),
                Update(Branches),
                Insert,
                End,
            ],
            Self::Read => vec![Read(Accounts)],
            Self::Update => vec![Update(Accounts)],
            Self::Loop => vec![
                Read(Accounts),
                Read(Tellers),
                Read(Branches),
                Begin,
                Update(Accounts),
                Insert,
                End,
            ],
        }
    }

    /// Whether it executes several statements in an explicit transaction.
    pub fn is_transaction(self) -> bool {
        matches!(self, Self::Rw3 | Self::Strict | Self::Like | Self::Loop)
    }

    /// The tables whose balances its transactions change.
    pub fn changes(self) -> &'static [Table] {
        use Table::{Accounts, Branches, Tellers};
        match self {
            Self::Rw3 | Self::Strict | Self::Like => &[Branches, Tellers, Accounts],
            Self::Update | Self::Loop => &[Accounts],
            Self::Read => &[],
        }
    }
}

impl FromStr for Profile {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let found = Self::ALL.into_iter().find(|it| it.name() == text);
        found.ok_or(())
    }
}

impl BankData {
    /// Branches, tellers and accounts: the rows of each file of a set.
    pub fn rows(&self) -> [(Table, i64); 3] {
        let branches = i64::from(self.scale);
        let rows = |table| match table {
            Table::Branches => branches,
            Table::Tellers => TELLERS * branches,
            Table::Accounts => i64::from(self.accounts) * branches,
        };
        TABLES.map(|table| (table, rows(table)))
    }

    /// Whether this data serves a workload that needs `other`: one that only reads can use the data
    /// of any profile.
    pub fn serves(&self, other: &Self) -> bool {
        let profile = other.profile == Profile::Read || self.profile == other.profile;
        let size = |it: &Self| (it.scale, it.accounts, it.files);
        profile && size(self) == size(other)
    }
}
