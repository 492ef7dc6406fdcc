//! Counts and sums over all records of a file: to check invariants of transactions.
//!
//! They read the pages without locks: use them while no session changes the file.

use std::hash::Hash;

use hashbrown::HashMap;

use crate::command::statement::{Field, Refusal, Sums};
use crate::session::{FileHandle, Session};

/// Sums by the value of a field.
pub type Groups = HashMap<Vec<u8>, i64>;

pub fn count(session: &Session, file: FileHandle) -> Result<i64, Refusal> {
    let mut count = 0;
    session.each_record(file, |_| {
        count += 1;
        Ok::<(), Refusal>(())
    })?;
    Ok(count)
}

pub fn sum(session: &Session, file: FileHandle, field: Field) -> Result<i64, Refusal> {
    let mut sum = 0;
    session.each_record(file, |record| {
        sum += field.number(record)?;
        Ok::<(), Refusal>(())
    })?;
    Ok(sum)
}

pub fn groups(session: &Session, file: FileHandle, sums: Sums) -> Result<Groups, Refusal> {
    let mut groups = Groups::new();
    session.each_record(file, |record| sums.add(record, &mut groups))?;
    Ok(groups)
}

/// The number of groups with different sums; a missing group has the sum 0.
pub fn differing<K: Eq + Hash>(one: &HashMap<K, i64>, other: &HashMap<K, i64>) -> i64 {
    let differs = |(group, sum): &(&K, &i64)| other.get(*group).copied().unwrap_or(0) != **sum;
    let missing = |(group, sum): &(&K, &i64)| !one.contains_key(*group) && **sum != 0;
    let count = one.iter().filter(differs).count() + other.iter().filter(missing).count();
    count as i64
}

impl Sums {
    /// Adds a record to its group.
    pub fn add(self, record: &[u8], groups: &mut Groups) -> Result<(), Refusal> {
        let value = self.by.map_or(Ok(&[][..]), |by| by.of(record))?;
        *groups.entry_ref(value).or_default() += self.field.number(record)?;
        Ok(())
    }
}

impl Field {
    /// The bytes of the field.
    pub fn of(self, record: &[u8]) -> Result<&[u8], Refusal> {
        let Self { offset, bytes } = self;
        let part = offset
            .checked_add(bytes)
            .and_then(|end| record.get(offset..end));
        part.ok_or_else(|| {
            let length = record.len();
            Refusal::Usage(format!(
                "the records have {length} bytes, and not {bytes} from {offset} on"
            ))
        })
    }

    /// The number in the field, which is text.
    pub fn number(self, record: &[u8]) -> Result<i64, Refusal> {
        let text = std::str::from_utf8(self.of(record)?).ok();
        text.and_then(|it| it.parse().ok()).ok_or_else(|| {
            let Self { offset, bytes } = self;
            Refusal::Usage(format!(
                "the record has no number in its {bytes} bytes from {offset} on"
            ))
        })
    }
}
