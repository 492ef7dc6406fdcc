//! Consistency check of a file: every live record is once in every key, and nothing else is.

use crate::error::Fault;
use crate::file::RecordFile;
use crate::page::{PageHeader, PageId, kind};
use crate::purge::is_valid_entry;
use crate::slots::{self, State};
use crate::store::Store;

/// Checks every page of a file. To be called while no session changes it.
pub fn verify(store: &Store, file: &RecordFile) -> Result<(), Fault> {
    let live = count_live(store, file)?;
    for key in 0..file.definition.keys.len() {
        let tree = file.tree(key);
        let entries = tree.check(store)?;
        if entries != live {
            let name = &file.name;
            return Err(Fault::Damaged(format!(
                "file {name} has {live} records, and {entries} entries of key {key}"
            )));
        }
        let mut last: Option<Vec<u8>> = None;
        tree.each_entry(store, |entry| {
            if !is_valid_entry(store, file, key, entry)? {
                let name = &file.name;
                return Err(Fault::Damaged(format!(
                    "file {name}: key {key} has an entry of no record: {entry:02x?}"
                )));
            }
            let value = &entry[..file.definition.keys[key].bytes()];
            if !file.definition.keys[key].duplicates && last.as_deref() == Some(value) {
                let name = &file.name;
                return Err(Fault::Damaged(format!(
                    "file {name}: key {key} has the value {value:02x?} twice"
                )));
            }
            last = Some(value.to_vec());
            Ok(())
        })?;
    }
    Ok(())
}

/// Calls `look` for all records of a file, also those of open transactions.
pub fn each_record(
    store: &Store,
    file: &RecordFile,
    mut look: impl FnMut(&[u8]),
) -> Result<(), Fault> {
    each_slot(store, file, |_, _, state, record| {
        if state == State::Live {
            look(record);
        }
        Ok(())
    })
}

fn count_live(store: &Store, file: &RecordFile) -> Result<u64, Fault> {
    let mut live = 0;
    each_slot(store, file, |page, slot, state, _| {
        if state == State::Ghost {
            let text = format!("slot {slot} of {page} is neither live nor free");
            return Err(Fault::Damaged(text));
        }
        live += u64::from(state == State::Live);
        Ok(())
    })?;
    Ok(live)
}

fn each_slot(
    store: &Store,
    file: &RecordFile,
    mut look: impl FnMut(PageId, u16, State, &[u8]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    for number in 0..file.free_space.pages() {
        let page = store.read(PageId {
            file: file.id,
            number,
        })?;
        if page.kind() != kind::DATA {
            continue;
        }
        for slot in 0..slots::slots_per_page(file.record_bytes()) as u16 {
            let (state, record) = store.slot(&page, slot, file.record_bytes())?;
            look(page.id(), slot, state, record)?;
        }
    }
    Ok(())
}
