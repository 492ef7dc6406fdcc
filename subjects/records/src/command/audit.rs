//! Counts and sums over all records of a file: to check invariants of transactions.
//!
//! They read the pages without locks: use them while no session changes the file.

use std::borrow::Borrow;
use std::hash::Hash;

use hashbrown::HashMap;

use crate::command::statement::{Field, Refusal, Sums};
use crate::room;
use crate::session::{FileHandle, Session};

/// Most groups of a file: more than the tellers of the largest bank.
pub const GROUPS_MAX: usize = 250_000;

/// Memory is looked at after so many more groups.
const LOOK_EVERY: usize = 1024;

/// About what the table takes for a group besides its value: twice an entry, since a table doubles.
const ENTRY_BYTES: usize = 128;

/// Sums by the value of a field; no more groups than [`GROUPS_MAX`] and than the memory holds.
#[derive(Debug)]
pub struct Groups<K> {
    sums: HashMap<K, i64>,
    /// About what it takes.
    bytes: usize,
}

impl<K> Default for Groups<K> {
    fn default() -> Self {
        Self {
            sums: HashMap::new(),
            bytes: 0,
        }
    }
}

impl<K: Eq + Hash> Groups<K> {
    /// Adds a number to the sum of a group.
    ///
    /// # Errors
    /// If there are too many groups, the memory does not hold them, or the sum does not fit into 64 bits.
    pub fn add<Q>(&mut self, group: &Q, number: i64) -> Result<(), Refusal>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        if let Some(sum) = self.sums.get_mut(group) {
            *sum = plus(*sum, number)?;
            return Ok(());
        }
        self.check_room(size_of_val(group))?;
        self.sums.insert(group.to_owned(), number);
        Ok(())
    }

    /// Refuses one more group, with a value of so many bytes.
    fn check_room(&mut self, bytes: usize) -> Result<(), Refusal> {
        let groups = self.sums.len();
        if groups == GROUPS_MAX {
            return Err(Refusal::Usage(format!(
                "more than {GROUPS_MAX} groups: name a field with fewer values after BY, or leave BY out"
            )));
        }
        self.bytes += bytes + ENTRY_BYTES;
        match groups % LOOK_EVERY {
            // As much again, before it is looked at the next time.
            0 => Ok(room::check_memory_for(2 * self.bytes as u64)?),
            _ => Ok(()),
        }
    }

    fn sum(&self, group: &K) -> i64 {
        self.sums.get(group).copied().unwrap_or(0)
    }
}

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
        sum = plus(sum, field.number(record)?)?;
        Ok::<(), Refusal>(())
    })?;
    Ok(sum)
}

fn plus(sum: i64, number: i64) -> Result<i64, Refusal> {
    let more = sum.checked_add(number);
    more.ok_or(Refusal::Overflow(sum, number))
}

pub fn groups(session: &Session, file: FileHandle, sums: Sums) -> Result<Groups<Vec<u8>>, Refusal> {
    let mut groups = Groups::default();
    session.each_record(file, |record| sums.add(record, &mut groups))?;
    Ok(groups)
}

/// The number of groups with different sums; a missing group has the sum 0.
pub fn differing<K: Eq + Hash>(one: &Groups<K>, other: &Groups<K>) -> i64 {
    let differs = |(group, sum): &(&K, &i64)| other.sum(group) != **sum;
    let missing = |(group, sum): &(&K, &i64)| !one.sums.contains_key(*group) && **sum != 0;
    let found = one.sums.iter().filter(differs).count();
    (found + other.sums.iter().filter(missing).count()) as i64
}

impl Sums {
    /// Adds a record to its group.
    ///
    /// # Errors
    /// As [`Groups::add`], or if the record has no such fields.
    pub fn add(self, record: &[u8], groups: &mut Groups<Vec<u8>>) -> Result<(), Refusal> {
        let group = self.by.map_or(Ok(&[][..]), |by| by.of(record))?;
        groups.add(group, self.field.number(record)?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_a_bound_and_one_that_is_there_goes_on() {
        let mut groups = Groups::<Vec<u8>>::default();
        for number in 0..GROUPS_MAX as u32 {
            groups.add(&number.to_le_bytes()[..], 1).unwrap();
        }
        let refused = groups.add(&b"one more"[..], 1).unwrap_err();
        assert!(
            refused.to_string().contains("more than 250000 groups"),
            "{refused}"
        );
        groups.add(&7_u32.to_le_bytes()[..], 1).unwrap();
        assert_eq!(groups.sum(&7_u32.to_le_bytes().to_vec()), 2);
    }

    #[test]
    fn a_sum_that_does_not_fit_is_refused() {
        let mut groups = Groups::<i64>::default();
        groups.add(&1, i64::MAX).unwrap();
        assert_eq!(groups.add(&1, 1), Err(Refusal::Overflow(i64::MAX, 1)));
        groups.add(&2, i64::MIN).unwrap();
        assert_eq!(groups.add(&2, -1), Err(Refusal::Overflow(i64::MIN, -1)));
    }
}
