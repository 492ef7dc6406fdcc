//! What a transaction does, and the data that it needs.

use std::str::FromStr;

use super::dialect::{Step, Table};

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

/// The data that a workload needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data {
    pub profile: Profile,
    /// Branches.
    pub scale: u32,
    /// Of each branch.
    pub accounts: u32,
    /// Sets of four files; a session keeps to one of them.
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

    /// What stands for it in the data. Never changed.
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

    /// Whether its steps stand between a begin and an end.
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

impl Data {
    /// Whether this data serves a workload that needs `other`: only reading needs no data of its
    /// own.
    pub fn serves(&self, other: &Self) -> bool {
        let profile = other.profile == Profile::Read || self.profile == other.profile;
        let size = |it: &Self| (it.scale, it.accounts, it.files);
        profile && size(self) == size(other)
    }
}
