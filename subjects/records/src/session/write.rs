//! Inserting, updating and deleting records.

use crate::cache::PageWrite;
use crate::error::Stop;
use crate::locks::Mode;
use crate::log::record::{Record, SlotChange};
use crate::session::work::Work;
use crate::slots::{self, Position, State};
use crate::status::Status;
use crate::tree::Pages;

impl<'a> Work<'a> {
    /// Inserts a record.
    pub fn insert(&mut self, record: &[u8]) -> Result<(), Stop> {
        self.check_length(record)?;
        self.enter()?;
        for key in 0..self.file.definition.keys.len() {
            self.claim_value(key, record)?;
        }
        let position = self.free_slot()?;
        self.put(position, record)?;
        for key in 0..self.file.definition.keys.len() {
            self.put_entry(key, record, position)?;
        }
        Ok(())
    }

    /// Changes the record at the session's position.
    pub fn update(&mut self, record: &[u8]) -> Result<(), Stop> {
        self.check_length(record)?;
        self.enter()?;
        let position = self.lock_current()?;
        let old = self.take_record();
        let updated = self.update_from(position, &old, record);
        if let Some(current) = self.current.as_mut() {
            current.record = old;
        }
        self.move_current(&updated?, record, position);
        Ok(())
    }

    /// Moves the record that the session read out of its position, to which the caller moves it
    /// back.
    fn take_record(&mut self) -> Vec<u8> {
        let current = self.current.as_mut();
        current.map_or_else(Vec::new, |it| std::mem::take(&mut it.record))
    }

    /// Changes a record, if it is as the session has read it; returns the keys whose values change.
    fn update_from(
        &mut self,
        position: Position,
        old: &[u8],
        record: &[u8],
    ) -> Result<Vec<usize>, Stop> {
        let keys = self.file.definition.keys.iter().enumerate();
        let moved: Vec<usize> = keys
            .filter(|(_, key)| key.differs(old, record))
            .map(|(number, _)| number)
            .collect();
        if !moved.is_empty() {
            // Check for a conflict before the new values are checked.
            self.current_page(position, old)?;
        }
        for key in &moved {
            self.release_value(*key, old, position)?;
            self.claim_value(*key, record)?;
        }
        self.rewrite(position, old, record, !moved.is_empty())?;
        for key in &moved {
            self.transaction.needs_purge = true;
            self.put_entry(*key, record, position)?;
        }
        Ok(moved)
    }

    /// Deletes the record at the session's position.
    pub fn delete(&mut self) -> Result<(), Stop> {
        self.enter()?;
        let position = self.lock_current()?;
        let old = self.current.as_ref().map_or(&[][..], |it| &it.record);
        let old = old.to_vec();
        for key in 0..self.file.definition.keys.len() {
            self.release_value(key, &old, position)?;
        }
        let mut page = self.current_page(position, &old)?;
        let change = SlotChange {
            transaction: self.number(),
            file: self.file.id,
            position,
            state_before: State::Live,
            state_after: State::Ghost,
            offset: 0,
            before: &old,
            after: &[],
        };
        self.transaction.needs_purge = true;
        self.change(&mut page, &change);
        if let Some(current) = self.current.as_mut() {
            current.record.clear();
        }
        Ok(())
    }

    fn check_length(&self, record: &[u8]) -> Result<(), Status> {
        if record.len() == self.file.record_bytes() {
            Ok(())
        } else {
            Err(Status::RecordLength)
        }
    }

    /// A free slot, locked.
    fn free_slot(&mut self) -> Result<Position, Stop> {
        let (file, stripe) = (self.file, self.stripe());
        let mut passed = Vec::new();
        let position = loop {
            let Some(position) = file.free_space.take(stripe) else {
                self.new_data_page()?;
                continue;
            };
            // Another session may have waited for the previous record at this position, and hold
            // the lock.
            match self.lock_record(position, Mode::Exclusive) {
                Ok(()) => break position,
                Err(_) => passed.push(position),
            }
        };
        for other in passed {
            file.free_space.add(stripe, other);
        }
        Ok(position)
    }

    fn new_data_page(&self) -> Result<(), Stop> {
        let id = self.file.page(self.file.free_space.new_page());
        let mut page = self.shared.store.create(id)?;
        self.shared
            .store
            .change(&mut page, &Record::Format(id), self.file.record_bytes());
        let slots = slots::slots_per_page(self.file.record_bytes());
        self.file
            .free_space
            .add_page(self.stripe(), id.number, slots);
        Ok(())
    }

    fn put(&mut self, position: Position, record: &[u8]) -> Result<(), Stop> {
        let page = self.write_page(position);
        let mut page = match page {
            Ok(page) => page,
            Err(fault) => {
                self.file.free_space.add(self.stripe(), position);
                return Err(fault.into());
            }
        };
        let change = SlotChange {
            transaction: self.number(),
            file: self.file.id,
            position,
            state_before: State::Free,
            state_after: State::Live,
            offset: 0,
            before: &[],
            after: record,
        };
        self.change(&mut page, &change);
        Ok(())
    }

    fn put_entry(&mut self, key: usize, record: &[u8], position: Position) -> Result<(), Stop> {
        let file = self.file;
        let entry = file.entry(key, record, position);
        let store = &self.shared.store;
        let session = self.registration.number;
        file.tree(key)
            .insert(store, session, &file.free_space, &entry, &mut |next| {
                self.enter_gap(key, &entry, next)?;
                self.lock_gap_change(key, &entry)
            })
    }

    /// Locks the record at the session's position.
    fn lock_current(&mut self) -> Result<Position, Stop> {
        let current = self.current.as_ref();
        let current = current.filter(|it| !it.record.is_empty());
        let position = current.ok_or(Status::InvalidPosition)?.position();
        self.lock_record(position, Mode::Exclusive)?;
        Ok(position)
    }

    /// The page of the session's record, if the record is as it was read.
    fn current_page(&self, position: Position, old: &[u8]) -> Result<PageWrite<'a>, Stop> {
        let page = self.write_page(position)?;
        let (state, record) =
            self.shared
                .store
                .slot(&page, position.slot, self.file.record_bytes())?;
        if state != State::Live || record != old {
            return Err(Status::Conflict.into());
        }
        Ok(page)
    }

    /// Writes the bytes that differ, or the whole record if a key changes.
    fn rewrite(
        &mut self,
        position: Position,
        old: &[u8],
        new: &[u8],
        is_whole: bool,
    ) -> Result<(), Stop> {
        let mut page = self.current_page(position, old)?;
        if old == new {
            return Ok(());
        }
        let range = if is_whole {
            0..old.len()
        } else {
            equal_at_begin(old, new)..old.len() - equal_at_end(old, new)
        };
        let change = SlotChange {
            transaction: self.number(),
            file: self.file.id,
            position,
            state_before: State::Live,
            state_after: State::Live,
            offset: range.start as u16,
            before: &old[range.clone()],
            after: &new[range],
        };
        self.change(&mut page, &change);
        Ok(())
    }

    fn move_current(&mut self, moved: &[usize], record: &[u8], position: Position) {
        let Some(current) = self.current.as_mut() else {
            return;
        };
        current.record.clear();
        current.record.extend_from_slice(record);
        if moved.contains(&current.key) {
            current.entry.clear();
            let entry = self.file.entry(current.key, record, position);
            current.entry.extend_from_slice(&entry);
        }
    }
}

/// How many bytes of two records are equal from the first one on: eight at a time, and then one by one.
fn equal_at_begin(one: &[u8], other: &[u8]) -> usize {
    let words = one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0);
    let words = 8 * words.take_while(|(one, other)| one == other).count();
    let bytes = one[words..].iter().zip(&other[words..]);
    words + bytes.take_while(|(one, other)| one == other).count()
}

/// How many bytes of two records are equal up to the last one. They are as long as each other.
fn equal_at_end(one: &[u8], other: &[u8]) -> usize {
    let (_, ones) = one.as_rchunks::<8>();
    let (_, others) = other.as_rchunks::<8>();
    let words = ones.iter().zip(others).rev();
    let words = 8 * words.take_while(|(one, other)| one == other).count();
    let rest = one.len() - words;
    let bytes = one[..rest].iter().zip(&other[..rest]).rev();
    words + bytes.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_equal_is_found_at_any_place() {
        for length in 0..40 {
            let one = vec![b'x'; length];
            assert_eq!(equal_at_begin(&one, &one), length);
            assert_eq!(equal_at_end(&one, &one), length);
            for first in 0..length {
                for last in first..length {
                    let mut other = one.clone();
                    (other[first], other[last]) = (b'-', b'-');
                    assert_eq!(equal_at_begin(&one, &other), first);
                    assert_eq!(equal_at_end(&one, &other), length - 1 - last);
                }
            }
        }
    }
}
