//! Saves what is whole in a damaged store into a new one. The damaged one is only read.
//!
//! The pages are read as they are, and the log is applied to them up to its first damaged byte; then
//! transactions that have not committed up to there are undone. The records that live then are inserted
//! into new files, whose trees are made anew.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use crate::cache::double_write_copies;
use crate::changes::Changes;
use crate::control;
use crate::engine::Engine;
use crate::error::Fault;
use crate::file::{self, Header, RecordFile};
use crate::log::Durability;
use crate::log::forced::Mark;
use crate::log::read::{each_record, firsts, survey};
use crate::log::record::{Record, SYSTEM, SlotChange};
use crate::options::{EngineOptions, Latching};
use crate::page::{PAGE_BYTES, Page, PageHeader, PageId, PageMut, kind};
use crate::parameters::TransactionKind;
use crate::slots::{self, State};
use crate::status::Status;
use crate::storage::{Disk, Folder, Storage};
use crate::store::{self, Reach};

/// Records that are inserted in one transaction.
const BATCH: u64 = 1000;

/// What was saved of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedFile {
    pub name: String,
    pub records: u64,
    /// Records that another one excluded, because they had the same value of a key without duplicates.
    pub refused: u64,
}

/// What was saved, and what is lost or in doubt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Salvaged {
    pub files: Vec<SavedFile>,
    pub notes: Vec<String>,
}

/// Saves a folder into a new one.
///
/// # Errors
/// If the damaged folder cannot be read at all or is in use, or the new one has files already, or cannot
/// be written.
pub fn salvage_folder(from: &Path, to: &Path) -> Result<Salvaged, Fault> {
    let read = |path: &Path| std::fs::read_dir(path).map(Iterator::count);
    read(from).map_err(Fault::io(|| format!("read the folder {}", from.display())))?;
    if read(to).is_ok_and(|files| files > 0) {
        let text = format!("the folder {} is not empty: name a new one", to.display());
        return Err(Fault::Definition(text));
    }
    let from = Folder::open(from)?;
    let options = EngineOptions {
        latching: Latching::Record,
        durability: Durability::None,
        ..EngineOptions::default()
    };
    salvage(&from, Arc::new(Folder::open(to)?), options)
}

/// The same for other kinds of storage. `to` is empty, and is written by an engine with these options.
///
/// # Errors
/// As [`salvage_folder`].
pub fn salvage(
    from: &dyn Storage,
    to: Arc<dyn Storage>,
    options: EngineOptions,
) -> Result<Salvaged, Fault> {
    let mut store = Damaged::read(from)?;
    store.apply_log(from)?;
    let (engine, _) = Engine::open_shared_in(to, options)?;
    let mut files = Vec::new();
    for number in store.files.keys().copied().collect::<Vec<_>>() {
        if !store.files[&number].0.is_dropped() {
            files.push(store.save(number, &engine)?);
        }
    }
    engine.close()?;
    let notes = store.notes;
    Ok(Salvaged { files, notes })
}

/// A damaged store in memory: its files, and the pages that differ from those on the disk.
struct Damaged {
    files: BTreeMap<u32, (RecordFile, Arc<dyn Disk>)>,
    changed: HashMap<PageId, Page>,
    /// Copies of the pages that were written last.
    copies: HashMap<PageId, Page>,
    notes: Vec<String>,
}

impl Damaged {
    fn read(from: &dyn Storage) -> Result<Self, Fault> {
        let mut store = Self {
            files: BTreeMap::new(),
            changed: HashMap::new(),
            copies: HashMap::new(),
            notes: Vec::new(),
        };
        for header in file::find_readable(from, &mut store.notes)? {
            let (number, disk) = (header.id, Arc::clone(&header.disk));
            if store.files.contains_key(&number) {
                let text = "is a copy of another file, and left out";
                store.notes.push(format!("the file {} {text}", header.path));
                continue;
            }
            let file = Header::into_file(header);
            store.files.insert(number, (file, disk));
        }
        if let Ok(copies) = double_write_copies(from) {
            store.copies = copies.into_iter().map(|it| (it.id(), it)).collect();
        }
        Ok(store)
    }

    /// A page as the log up to now has left it; `None` if it is damaged.
    fn page(&self, id: PageId) -> Option<Page> {
        if let Some(page) = self.changed.get(&id) {
            return Some(page.clone());
        }
        let (_, disk) = self.files.get(&id.file)?;
        let mut page = Page::blank();
        let at = u64::from(id.number) * PAGE_BYTES as u64;
        let is_read = disk.read_at(page.bytes_mut(), at).is_ok();
        if is_read && page.is_whole(id) && !page.is_blank() {
            return Some(page);
        }
        self.copies.get(&id).cloned()
    }

    /// Applies the log up to its first damaged byte, and undoes what has not committed there.
    fn apply_log(&mut self, from: &dyn Storage) -> Result<(), Fault> {
        let found = control::find(from);
        if let Err(Fault::Newer(format)) = found {
            return Err(Fault::Newer(format));
        }
        let last = found.ok().and_then(|it| it.last);
        let start = match last {
            Some(last) => last.start,
            None => {
                let text =
                    "the control file is lost: the oldest file of the log is taken as the begin";
                self.notes.push(text.to_owned());
                firsts(from, 0)?.first().copied().unwrap_or(0)
            }
        };
        let survey = survey(from, start)?;
        if survey.is_missing {
            let text = format!("the log from byte {start} on is lost");
            self.notes.push(text);
        }
        let forced = Mark::find(from)?.end.max(survey.forced);
        let durable = last.map_or(0, |it| it.durable).max(forced);
        if durable > survey.end || survey.behind > 0 {
            self.notes.push(format!(
                "the log is damaged or cut {}: {} bytes that were forced to the disk are not applied, \
                 and {} whole records with {} commits that follow; of these transactions, changes may \
                 be saved in part",
                survey.place(),
                durable.saturating_sub(survey.end),
                survey.behind,
                survey.commits_behind
            ));
        }
        let mut open: BTreeMap<u64, Changes> = BTreeMap::new();
        let mut unfit = 0_u64;
        let mut reach = self.reach()?;
        each_record(from, start, survey.end, |record, lsn| {
            unfit += u64::from(!(reach.covers(record) && self.redo(record, lsn)));
            match record {
                Record::Slot(change) if change.transaction != SYSTEM => {
                    open.entry(change.transaction).or_default().push(change);
                }
                Record::Commit { transaction, .. } | Record::Finished { transaction } => {
                    open.remove(transaction);
                }
                _ => {}
            }
            Ok(())
        })?;
        if unfit > 0 {
            let text = format!("{unfit} changes of the log were to pages that are lost");
            self.notes.push(text);
        }
        for changes in open.values() {
            changes.from(0).rev().for_each(|it| self.undo(&it));
        }
        Ok(())
    }

    /// Up to where the files reach on the disk.
    fn reach(&self) -> Result<Reach, Fault> {
        let mut reach = Reach::default();
        for (number, (file, disk)) in &self.files {
            let what = || format!("read the file {}", file.path());
            reach.add(*number, disk.length().map_err(Fault::io(what))?);
        }
        Ok(reach)
    }

    /// Redoes a change of records; false if its page is lost.
    fn redo(&mut self, record: &Record, lsn: u64) -> bool {
        let id = match record {
            Record::Format(id) => *id,
            Record::Slot(change) => change.page(),
            // Trees are made anew.
            _ => return true,
        };
        let Some((file, _)) = self.files.get(&id.file) else {
            return false;
        };
        let record_bytes = file.record_bytes();
        let page = match record {
            Record::Format(_) => Some(self.page(id).unwrap_or_else(Page::blank)),
            _ => self.page(id),
        };
        let Some(mut page) = page else {
            return false;
        };
        if page.lsn() >= lsn {
            return true;
        }
        if !store::can_redo(record, &page, record_bytes) {
            return false;
        }
        store::apply(record, &mut page, record_bytes);
        page.set_lsn(lsn);
        self.changed.insert(id, page);
        true
    }

    fn undo(&mut self, change: &SlotChange) {
        let id = change.page();
        let (Some(mut page), Some((file, _))) = (self.page(id), self.files.get(&id.file)) else {
            return;
        };
        let undone = SlotChange {
            state_after: change.state_before,
            before: &[],
            after: change.before,
            ..*change
        };
        let (undone, record_bytes) = (Record::Slot(undone), file.record_bytes());
        if store::can_redo(&undone, &page, record_bytes) {
            store::apply(&undone, &mut page, record_bytes);
            self.changed.insert(id, page);
        }
    }

    /// Inserts the live records of a file into a new one.
    fn save(&mut self, number: u32, engine: &Engine) -> Result<SavedFile, Fault> {
        let (file, disk) = &self.files[&number];
        let what = || format!("read the file {}", file.path());
        let length = disk.length().map_err(Fault::io(what))?;
        let on_disk = u32::try_from(length.div_ceil(PAGE_BYTES as u64)).unwrap_or(u32::MAX);
        let changed = self.changed.keys().filter(|it| it.file == number);
        let pages = changed.map(|it| it.number + 1).fold(on_disk, u32::max);
        let stopped = |status: Status| {
            let why = engine.failure().unwrap_or_else(|| status.to_string());
            Fault::Stopped(why, status)
        };
        engine.create_file(&file.name, &file.definition)?;
        let mut session = engine.session();
        let handle = session.open(&file.name).map_err(stopped)?;
        let mut saved = SavedFile {
            name: file.name.clone(),
            records: 0,
            refused: 0,
        };
        let mut lost = Vec::new();
        session.begin(TransactionKind::Exclusive).map_err(stopped)?;
        for number in 0..pages {
            let Some(page) = self.page(file.page(number)) else {
                lost.push(number);
                continue;
            };
            if page.kind() != kind::DATA {
                continue;
            }
            for slot in 0..slots::slots_per_page(file.record_bytes()) as u16 {
                let Some((State::Live, record)) = slots::read(&page, slot, file.record_bytes())
                else {
                    continue;
                };
                match session.insert(handle, record) {
                    Ok(()) => saved.records += 1,
                    Err(Status::DuplicateKey) => saved.refused += 1,
                    Err(status) => return Err(stopped(status)),
                }
                if saved.records.is_multiple_of(BATCH) {
                    session.end().map_err(stopped)?;
                    session.begin(TransactionKind::Exclusive).map_err(stopped)?;
                }
            }
        }
        session.end().map_err(stopped)?;
        if let Some(first) = lost.first() {
            let note = format!(
                "{} pages of the file {} are damaged or blank, the first from byte {} on; records on \
                 them are lost",
                lost.len(),
                file.path(),
                u64::from(*first) * PAGE_BYTES as u64
            );
            self.notes.push(note);
        }
        Ok(saved)
    }
}
