//! Locks for key values that a record gets or loses.

use crate::definition::Entry;
use crate::error::Stop;
use crate::locks::{LockName, Mode};
use crate::purge::is_valid_entry;
use crate::session::work::Work;
use crate::slots::{POSITION_BYTES, Position};
use crate::status::Status;
use crate::tree::Found;

impl Work<'_> {
    /// Locks a new value of a key without duplicates, and refuses one that a record has already.
    pub fn claim_value(&mut self, key: usize, record: &[u8]) -> Result<(), Stop> {
        if self.file.definition.keys[key].duplicates {
            return Ok(());
        }
        let mut bound = self.value(key, record);
        self.lock_value(key, &bound)?;
        let value = bound.clone();
        bound.extend_from_slice(&[0; POSITION_BYTES]);
        let mut greater = false;
        // With the lock, no other running transaction has changed a record to or from this value.
        loop {
            let Some(entry) = self.entry_of_value(key, &value, &bound, greater)? else {
                return Ok(());
            };
            if is_valid_entry(&self.shared.store, self.file, key, &entry)? {
                return Err(Status::DuplicateKey.into());
            }
            (bound, greater) = (entry, true);
        }
    }

    /// The first entry with a value, which is locked, from a bound on.
    fn entry_of_value(
        &mut self,
        key: usize,
        value: &[u8],
        bound: &[u8],
        greater: bool,
    ) -> Result<Option<Entry>, Stop> {
        let store = &self.shared.store;
        let tree = self.file.tree(key);
        if store.is_latch_free() {
            let found = &mut self.spare.entry;
            let looked = tree.look_for_first(store, bound, greater, found);
            if let Ok((result, leaves)) = looked
                && leaves.check().is_ok()
            {
                self.registration.counts.cache_hits.add(leaves.pages);
                let is_there = result == Found::Entry && found.starts_with(value);
                return Ok(is_there.then(|| Entry::from_slice(found)));
            }
        }
        tree.first_from(store, bound, greater, |entry| {
            let with_value = entry.filter(|it| it.starts_with(value));
            Ok(with_value.map(Entry::from_slice))
        })
    }

    /// Locks the value of an entry that becomes stale, and the gap before it.
    pub fn release_value(
        &mut self,
        key: usize,
        old: &[u8],
        position: Position,
    ) -> Result<(), Stop> {
        if !self.file.definition.keys[key].duplicates {
            let value = self.value(key, old);
            self.lock_value(key, &value)?;
        }
        let entry = self.file.entry(key, old, position);
        self.lock_gap_change(key, &entry)
    }

    fn value(&self, key: usize, record: &[u8]) -> Entry {
        let mut value = Entry::with_capacity(self.file.tree(key).compared);
        self.file.definition.keys[key].extract(record, &mut value);
        value
    }

    fn lock_value(&mut self, key: usize, value: &[u8]) -> Result<(), Stop> {
        let name = LockName::value(self.file.id, key, value);
        self.lock(name, Mode::Exclusive)
    }
}
