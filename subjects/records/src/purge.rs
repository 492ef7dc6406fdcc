//! Undo of changes, and purge of stale key entries and ghosts.
//!
//! An entry of a key is valid if its record is live and has its value. Deletes, changes of keys and
//! undone inserts leave stale entries, which searches skip. The purge removes them, and frees the
//! slots of deleted records, after the transaction has ended and before its locks are released.
//! Undo and purge may be repeated after a crash: an undo restores the old contents from the last
//! change to the first, and no other transaction has changed them.

use crate::changes::Changes;
use crate::error::Fault;
use crate::file::RecordFile;
use crate::log::record::{Record, SYSTEM, SlotChange};
use crate::shared::Shared;
use crate::slots::{Position, State};
use crate::store::Store;

impl Shared {
    /// Undoes the changes from `first` on.
    pub fn undo(&self, changes: &Changes, first: usize) -> Result<(), Fault> {
        for change in changes.from(first).rev() {
            let file = self.file(change.file);
            let _latch = self.latch_operation(Some(&file));
            undo_one(&self.store, &file, &change)?;
        }
        Ok(())
    }

    /// Purges after a transaction that has ended, and logs that it is finished.
    pub fn purge(&self, transaction: u64, changes: &Changes) -> Result<(), Fault> {
        for change in changes.from(0) {
            let file = self.file(change.file);
            let _latch = self.latch_operation(Some(&file));
            remove_stale_entries(&self.store, &file, &change)?;
        }
        let mut freed = Vec::new();
        for change in changes.from(0) {
            let file = self.file(change.file);
            let latch = self.latch_operation(Some(&file));
            let is_freed = free_ghost(&self.store, &file, change.position)?;
            drop(latch);
            if is_freed {
                freed.push((file, change.position));
            }
        }
        self.store.log.append(&Record::Finished { transaction });
        for (file, position) in freed {
            file.free_space.add(position.page, position);
        }
        Ok(())
    }
}

fn undo_one(store: &Store, file: &RecordFile, change: &SlotChange) -> Result<(), Fault> {
    let state_after = match change.state_before {
        // Its key entries may still exist.
        State::Free => State::Ghost,
        state => state,
    };
    let undone = SlotChange {
        transaction: SYSTEM,
        state_before: change.state_after,
        state_after,
        before: &[],
        after: change.before,
        ..*change
    };
    let mut page = store.write(change.page())?;
    store.slot(&page, change.position.slot, file.record_bytes())?;
    store.change(&mut page, &Record::Slot(undone), file.record_bytes());
    Ok(())
}

/// Removes the entries of the record before and after the change, unless they are valid.
fn remove_stale_entries(
    store: &Store,
    file: &RecordFile,
    change: &SlotChange,
) -> Result<(), Fault> {
    let images = [
        (change.state_before, change.before),
        (change.state_after, change.after),
    ];
    for (state, image) in images {
        // Changes of keys and states are logged as whole records.
        if state != State::Live || image.len() != file.record_bytes() {
            continue;
        }
        for key in 0..file.definition.keys.len() {
            let entry = file.entry(key, image, change.position);
            if !is_valid_entry(store, file, key, &entry)? {
                file.tree(key).remove(store, &entry)?;
            }
        }
    }
    Ok(())
}

/// Whether the record of an entry is live and has its value. The record must be locked, or no other
/// session active.
pub fn is_valid_entry(
    store: &Store,
    file: &RecordFile,
    key: usize,
    entry: &[u8],
) -> Result<bool, Fault> {
    let position = Position::of_entry(entry);
    let page = store.read(file.page(position.page))?;
    let (state, record) = store.slot(&page, position.slot, file.record_bytes())?;
    Ok(state == State::Live && file.entry(key, record, position)[..] == *entry)
}

fn free_ghost(store: &Store, file: &RecordFile, position: Position) -> Result<bool, Fault> {
    let mut page = store.write(file.page(position.page))?;
    let (state, _) = store.slot(&page, position.slot, file.record_bytes())?;
    if state != State::Ghost {
        return Ok(false);
    }
    let freed = SlotChange {
        transaction: SYSTEM,
        file: file.id,
        position,
        state_before: State::Ghost,
        state_after: State::Free,
        offset: 0,
        before: &[],
        after: &[],
    };
    store.change(&mut page, &Record::Slot(freed), file.record_bytes());
    Ok(true)
}
