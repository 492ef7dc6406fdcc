//! Recovery at a start: redo of the log, then undo of transactions that did not commit.
//!
//! After Mohan et al., ARIES (ACM TODS 17, 1992). Undo is simpler here, because records stay at
//! their positions and their old contents are restored.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cache::Cache;
use crate::changes::Changes;
use crate::checkpoint::Checkpoints;
use crate::control::{self, Checkpoint, Control, Found};
use crate::error::Fault;
use crate::extents::Extent;
use crate::file::{self, Header, RecordFile};
use crate::log::Log;
use crate::log::files::file_name;
use crate::log::forced::{Forced, Mark};
use crate::log::read::{Survey, each_record, erase_after, survey, write_again};
use crate::log::record::{Record, SYSTEM};
use crate::options::EngineOptions;
use crate::shared::Shared;
use crate::storage::Storage;
use crate::store::Reach;

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
///
/// # Errors
/// If something that was acknowledged is damaged or missing: which file, and where. Then nothing was
/// changed but torn pages, which are mended, and the end of the log that is given up.
pub fn open(
    storage: Arc<dyn Storage>,
    options: EngineOptions,
) -> Result<(Shared, Recovered), Fault> {
    let mut found = control::find(storage.as_ref())?;
    let doubt = found.doubt.take();
    restore(storage, options, found).map_err(|fault| match (fault, doubt) {
        (Fault::Damaged(text), Some(doubt)) => Fault::Damaged(format!("{text}; and {doubt}")),
        (fault, _) => fault,
    })
}

fn restore(
    storage: Arc<dyn Storage>,
    options: EngineOptions,
    found: Found,
) -> Result<(Shared, Recovered), Fault> {
    let last = found.last.unwrap_or_default();
    let headers = file::find(storage.as_ref())?;
    check_files(&headers, &found)?;
    let cache = Cache::new(storage.as_ref(), options.cache_pages, options.latching)?;
    for header in &headers {
        cache.add_disk(Arc::clone(&header.disk));
    }
    cache.restore_torn(headers.len() as u32)?;
    let files: Vec<RecordFile> = headers.into_iter().map(Header::into_file).collect();
    let pages_lsn = inspect(&cache, &files, &found.extents)?;
    let survey = survey_log(storage.as_ref(), &last, pages_lsn)?;
    let end = survey.end;
    let written = write_again(storage.as_ref(), last.start, end);
    let written = written.and_then(|()| match survey.behind {
        0 => Ok(()),
        _ => erase_after(storage.as_ref(), end),
    });
    if written.is_err() {
        // What the kernel has of it may be gone at the next start.
        Forced::open(storage.as_ref(), Mark::find(storage.as_ref())?)?.doubt();
    }
    written?;
    let control = Control::open(storage.as_ref(), found)?;
    let log = Log::open(Arc::clone(&storage), end, options.log_options())?;
    let shared = Shared::new(storage, options, cache, log, Checkpoints::new(control));
    let (open, mut recovered) = redo(&shared, &files, last.start, end)?;
    shared.store.log.begin_to_gather();
    finish(&shared, files, open, &mut recovered)?;
    Ok((shared, recovered))
}

fn check_files(headers: &[Header], found: &Found) -> Result<(), Fault> {
    let last = found.last.unwrap_or_default();
    file::check_all(headers, last.files, &found.extents)?;
    // The first checkpoint is made before the first file.
    match headers.first() {
        Some(header) if last.sequence == 0 => Err(Fault::Damaged(format!(
            "the file control is older than the file {}, from byte 0 on",
            header.path
        ))),
        _ => Ok(()),
    }
}

/// Checks that the newest file of the log is there, and not cut.
fn check_newest(storage: &dyn Storage, mark: &Mark) -> Result<(), Fault> {
    if mark.length == 0 {
        return Ok(());
    }
    let name = file_name(mark.file);
    let what = || format!("read the file {name} of the log");
    let names = storage.names().map_err(Fault::io(what))?;
    if !names.contains(&name) {
        let text = format!("the file {name} of the log is missing");
        return Err(Fault::Damaged(text));
    }
    let file = storage.open(&name).map_err(Fault::io(what))?;
    let length = file.length().map_err(Fault::io(what))?;
    if length < mark.length {
        return Err(Fault::Damaged(format!(
            "the file {name} of the log ends at byte {length}, and had {} bytes or more",
            mark.length
        )));
    }
    Ok(())
}

/// Reads all pages, and checks them; returns the greatest LSN.
fn inspect(cache: &Cache, files: &[RecordFile], extents: &[Extent]) -> Result<u64, Fault> {
    let mut lsn = 0;
    for file in files {
        let extent = extents.iter().find(|it| it.file == file.id);
        // A dropped file is shorter.
        let extent = extent.filter(|_| !file.is_dropped());
        lsn = lsn.max(file.inspect(cache.disk(file.id).as_ref(), extent)?);
    }
    Ok(lsn)
}

/// Finds the end of the log.
///
/// A log whose last write was torn ends before bytes that are no record. They are damage instead if
/// something tells that the log was longer: the control file, the pages, which are written after their
/// changes are on the disk; the file `forced`; or a record that follows, and says that all before it was
/// forced. If the machine has run since the log was written, nothing of it can be torn: then any record
/// that follows tells.
fn survey_log(storage: &dyn Storage, last: &Checkpoint, pages_lsn: u64) -> Result<Survey, Fault> {
    let survey = survey(storage, last.start)?;
    let mark = Mark::find(storage)?;
    check_newest(storage, &mark)?;
    if survey.is_missing && last.sequence > 0 {
        return Err(Fault::Damaged(format!(
            "the file of the log that has byte {0} of it is missing: {1} or one before it",
            last.start,
            file_name(last.start)
        )));
    }
    let witnesses = [
        (last.durable, "the file control"),
        (mark.end, "the file forced"),
        (pages_lsn, "a page of the files of records"),
        (survey.forced, "a record that follows"),
    ];
    let known = witnesses.into_iter().max_by_key(|it| it.0);
    let (durable, witness) = known.unwrap_or_default();
    let is_untorn = mark.is_of_boot(storage.boot());
    if survey.end >= durable && !(is_untorn && survey.behind > 0) {
        return Ok(survey);
    }
    let lost = match durable.saturating_sub(survey.end) {
        0 => "nothing that was written can be torn, because the machine has run since".to_owned(),
        lost => format!("{witness} knows of {lost} more bytes"),
    };
    Err(Fault::Damaged(format!(
        "the log is damaged or cut {}: {lost}, and {} whole records with {} commits follow; all \
         before that byte can be saved",
        survey.place(),
        survey.behind,
        survey.commits_behind
    )))
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
    files: &[RecordFile],
    start: u64,
    end: u64,
) -> Result<(BTreeMap<u64, Open>, Recovered), Fault> {
    let mut open: BTreeMap<u64, Open> = BTreeMap::new();
    let mut recovered = Recovered::default();
    let record_bytes = |file: u32| files.get(file as usize).map(RecordFile::record_bytes);
    let storage = shared.storage.as_ref();
    let mut reach = Reach::default();
    for file in files {
        let length = shared.store.cache.disk(file.id).length();
        let what = || format!("read the file {}", file.path());
        reach.add(file.id, length.map_err(Fault::io(what))?);
    }
    each_record(storage, start, end, |record, lsn| {
        if !reach.covers(record) {
            let pages = record.pages();
            let text = format!(
                "the log before byte {lsn} tells of {}, and the file ends far before that",
                pages
                    .iter()
                    .max()
                    .map_or_else(String::new, ToString::to_string)
            );
            return Err(Fault::Damaged(text));
        }
        recovered.records += u64::from(!matches!(record, Record::Forced { .. }));
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
    files: Vec<RecordFile>,
    open: BTreeMap<u64, Open>,
    recovered: &mut Recovered,
) -> Result<(), Fault> {
    let count = files.len() as u32;
    for file in files {
        shared.add_file(file);
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
    if recovered.records == 0 {
        // The pages are as they were when they were inspected.
        return Ok(());
    }
    for number in 0..count {
        let (disk, file) = (shared.store.cache.disk(number), shared.file(number));
        if !file.is_dropped() {
            file.inspect(disk.as_ref(), None)?;
        }
    }
    Ok(())
}
