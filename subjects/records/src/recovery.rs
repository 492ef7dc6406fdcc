//! Recovery at a start: redo of the log, then undo of transactions that did not commit.
//!
//! After Mohan et al., ARIES (ACM TODS 17, 1992). Undo is simpler here, because records stay at
//! their positions and their old contents are restored.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cache::Cache;
use crate::changes::Changes;
use crate::checkpoint::Checkpoints;
use crate::control::{Checkpoint, Control};
use crate::error::Fault;
use crate::file::{self, Header};
use crate::log::Log;
use crate::log::files::{file_name, file_start};
use crate::log::read::each_record;
use crate::log::record::{Record, SYSTEM};
use crate::options::{EngineOptions, stripes};
use crate::shared::Shared;
use crate::storage::Storage;

/// What a start recovered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Records of the log that were read.
    pub records: u64,
    /// Transactions that had not committed, and were undone.
    pub undone: u64,
    /// Transactions that had committed, and were purged.
    pub purged: u64,
}

/// Opens the storage, and restores the state of all committed transactions.
pub fn open(
    storage: Arc<dyn Storage>,
    options: EngineOptions,
) -> Result<(Shared, Recovered), Fault> {
    let (control, last) = Control::open(storage.as_ref())?;
    let is_new = last.is_none();
    let last = last.unwrap_or_default();
    if is_new {
        control.write(&last)?;
        storage
            .sync_names()
            .map_err(Fault::io(|| "make the folder".to_owned()))?;
    }
    let headers = file::find(storage.as_ref())?;
    let cache = Cache::new(
        storage.as_ref(),
        options.cache_pages,
        stripes(options.latching),
    )?;
    for header in &headers {
        cache.add_disk(Arc::clone(&header.disk));
    }
    cache.restore_torn(headers.len() as u32)?;
    let log = open_log(&storage, &last, options.log_file_bytes())?;
    let checkpoints = Checkpoints::new(control, last);
    let shared = Shared::new(storage, options, cache, log, checkpoints);
    let (open, mut recovered) = redo(&shared, &headers, &last)?;
    finish(&shared, headers, open, &mut recovered)?;
    Ok((shared, recovered))
}

/// Finds the end of the log, and opens it there.
fn open_log(storage: &Arc<dyn Storage>, last: &Checkpoint, file_bytes: u64) -> Result<Log, Fault> {
    let nothing = |_: &Record, _| Ok(());
    let end = each_record(storage.as_ref(), last.start, last.durable, nothing)?;
    let names = storage
        .names()
        .map_err(Fault::io(|| "list the log".to_owned()))?;
    // It follows a part of the log that is lost, and is of no use without it.
    for start in names.iter().filter_map(|it| file_start(it)) {
        if start > end {
            let name = file_name(start);
            let what = || format!("remove the file {name} of the log");
            storage.remove(&name).map_err(Fault::io(what))?;
        }
    }
    Log::open(Arc::clone(storage), end, file_bytes)
}

/// A transaction whose end is not in the log.
#[derive(Default)]
struct Open {
    changes: Changes,
    is_committed: bool,
}

/// Redoes the log; returns the transactions that are not finished.
fn redo(
    shared: &Shared,
    headers: &[Header],
    last: &Checkpoint,
) -> Result<(BTreeMap<u64, Open>, Recovered), Fault> {
    let mut open: BTreeMap<u64, Open> = BTreeMap::new();
    let mut recovered = Recovered::default();
    let record_bytes = |file: u32| {
        let header = headers.get(file as usize)?;
        Some(usize::from(header.definition.record_bytes))
    };
    let storage = shared.storage.as_ref();
    each_record(storage, last.start, last.durable, |record, lsn| {
        recovered.records += 1;
        shared.store.redo(record, lsn, record_bytes)?;
        match record {
            Record::Slot(change) if change.transaction != SYSTEM => {
                let transaction = open.entry(change.transaction).or_default();
                transaction.changes.push(change);
            }
            Record::Commit {
                transaction,
                needs_purge: true,
            } => {
                open.entry(*transaction).or_default().is_committed = true;
            }
            Record::Commit { transaction, .. } | Record::Finished { transaction } => {
                open.remove(transaction);
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok((open, recovered))
}

/// Undoes what did not commit, purges, and makes a checkpoint.
fn finish(
    shared: &Shared,
    headers: Vec<Header>,
    open: BTreeMap<u64, Open>,
    recovered: &mut Recovered,
) -> Result<(), Fault> {
    let files = headers.len() as u32;
    for header in headers {
        shared.add_file(header.into_file());
    }
    for (
        transaction,
        Open {
            changes,
            is_committed,
        },
    ) in open
    {
        if is_committed {
            recovered.purged += 1;
        } else {
            recovered.undone += 1;
            shared.undo(&changes, 0)?;
        }
        shared.purge(transaction, &changes)?;
    }
    shared.checkpoint()?;
    for number in 0..files {
        let (disk, file) = (shared.store.cache.disk(number), shared.file(number));
        if !file.is_dropped() {
            file.find_free_space(disk.as_ref())?;
        }
    }
    Ok(())
}
