//! Overflows: when the table was full, and which owners held most locks then.

use std::collections::VecDeque;

use hashbrown::HashMap;

use crate::lock_table::entry::OwnerId;
use crate::lock_table::latched::LockTable;

/// Overflows that are kept, and how many owners and arguments each names.
pub const KEPT: usize = 10;
pub const NAMED: usize = 3;

/// A time during which locks were refused because the table was full.
#[derive(Debug, Clone)]
pub struct Overflow {
    pub unix_ms: u64,
    /// Requests that were refused during that time.
    pub refused: u64,
    /// The owners of most locks, and their numbers of locks.
    pub owners: Vec<(OwnerId, u64)>,
    pub arguments: Vec<Crowded>,
}

/// Table, argument and number of locks on it.
pub type Crowded = (Box<[u8]>, Box<[u8]>, u64);

/// The last overflows. Recording one reads the whole table, so refusals less than [`APART_MS`]
/// apart count as one overflow.
#[derive(Debug, Default)]
pub struct Overflows {
    kept: VecDeque<Overflow>,
    last_refusal_ms: u64,
    total: u64,
}

/// Time without a refusal that ends an overflow.
pub const APART_MS: u64 = 1000;

impl Overflows {
    /// Counts a request that was refused. True if a new overflow begins with it: the caller then
    /// asks for the [`largest_holders`] and calls [`Overflows::begin`].
    pub fn refused(&mut self, now_ms: u64) -> bool {
        let apart = now_ms.saturating_sub(self.last_refusal_ms) >= APART_MS;
        self.last_refusal_ms = now_ms;
        match self.kept.back_mut() {
            Some(last) if !apart => {
                last.refused += 1;
                false
            }
            _ => true,
        }
    }

    pub fn begin(&mut self, overflow: Overflow) {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.total += 1;
        self.kept.push_back(overflow);
    }

    pub fn kept(&self) -> impl Iterator<Item = &Overflow> {
        self.kept.iter()
    }

    pub fn total(&self) -> u64 {
        self.total
    }
}

/// The owners with most locks, and the arguments with most. Reads the whole table.
pub fn largest_holders(table: &LockTable) -> (Vec<(OwnerId, u64)>, Vec<Crowded>) {
    let mut owners: HashMap<OwnerId, u64> = HashMap::new();
    let mut arguments: Vec<Crowded> = Vec::new();
    table.each_partition(|partition| {
        for (owner, count) in partition.owner_counts() {
            *owners.entry(owner).or_default() += u64::from(count);
        }
        for (subject, count) in partition.argument_counts() {
            let count = u64::from(count);
            if arguments.len() < NAMED || arguments.iter().any(|it| it.2 < count) {
                arguments.push((subject.table.into(), subject.argument.into(), count));
                arguments.sort_by_key(|it| std::cmp::Reverse(it.2));
                arguments.truncate(NAMED);
            }
        }
    });
    let mut owners: Vec<_> = owners.into_iter().collect();
    owners.sort_by_key(|(owner, count)| (std::cmp::Reverse(*count), *owner));
    owners.truncate(NAMED);
    (owners, arguments)
}
