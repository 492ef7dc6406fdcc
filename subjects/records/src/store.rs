//! Logged changes of pages: the only way in which a page changes.
//!
//! A log record describes a change, and [`apply`] makes it, at once and again after a crash.

use std::collections::BTreeMap;

use crate::cache::{Cache, Obstacle, PageRead, PageWrite};
use crate::error::Fault;
use crate::log::record::{Record, SlotChange};
use crate::log::{Log, buffer_of};
use crate::node;
use crate::page::{BODY, PAGE_BYTES, Page, PageBytes, PageHeader, PageId, PageLook, PageMut, kind};
use crate::slots::{self, State};

/// The cache and the log, which depend on each other.
pub struct Store {
    pub cache: Cache,
    pub log: Log,
}

impl Store {
    pub fn read(&self, id: PageId) -> Result<PageRead<'_>, Fault> {
        self.cache.read(&self.log, id)
    }

    /// Whether pages may be read without latches.
    pub fn is_latch_free(&self) -> bool {
        self.cache.is_latch_free()
    }

    /// The page without a latch.
    pub fn look(&self, id: PageId) -> Result<PageLook<'_>, Obstacle> {
        self.cache.look(id)
    }

    pub fn write(&self, id: PageId) -> Result<PageWrite<'_>, Fault> {
        self.cache.write(&self.log, id)
    }

    pub fn create(&self, id: PageId) -> Result<PageWrite<'_>, Fault> {
        self.cache.create(&self.log, id)
    }

    /// A slot's state and record.
    pub fn slot<'a>(
        &self,
        page: &'a PageBytes,
        slot: u16,
        record_bytes: usize,
    ) -> Result<(State, &'a [u8]), Fault> {
        slots::read(page, slot, record_bytes).ok_or_else(|| {
            let text = format!(
                "slot {slot} of {} has no record, and is referred to",
                page.id()
            );
            Fault::Damaged(text)
        })
    }

    /// Logs a change of one page, and makes it.
    pub fn change(&self, page: &mut PageWrite, record: &Record, record_bytes: usize) {
        self.publish_gathered(page);
        page.mark_dirty();
        let lsn = self.log.append(record);
        apply(record, page, record_bytes);
        page.set_lsn(lsn);
    }

    /// Makes a change of a slot in a session's transaction, whose record the session gathers, if the log is
    /// kept so. Then its LSN is not known yet: who writes the page to the disk says how much of the log the
    /// page has.
    pub fn change_slot(
        &self,
        session: u32,
        page: &mut PageWrite,
        change: &SlotChange,
        record_bytes: usize,
    ) {
        let record = Record::Slot(*change);
        if !self.log.gathers() {
            return self.change(page, &record, record_bytes);
        }
        page.mark_dirty();
        self.log.gather(buffer_of(session), &record);
        apply(&record, page, record_bytes);
    }

    /// The same for an insert of an entry into a leaf. Its records must stand in the log in the order of
    /// its changes: so what another session has gathered is appended before.
    pub fn insert_entry(&self, session: u32, leaf: &mut PageWrite, index: usize, entry: &[u8]) {
        let record = Record::EntryIn(leaf.id(), index as u16, entry);
        if !self.log.gathers() {
            return self.change(leaf, &record, 0);
        }
        let buffer = buffer_of(session);
        if let Some(other) = leaf.gather_in(buffer) {
            self.log.publish(other);
        }
        leaf.mark_dirty();
        self.log.gather(buffer, &record);
        apply(&record, leaf, 0);
    }

    /// Logs new contents of several pages as one record of a session, and writes them to the pages.
    pub fn replace(&self, session: u32, pages: &mut [(PageWrite, Page)]) {
        // What the session has gathered comes before.
        self.log.publish(buffer_of(session));
        for (page, _) in pages.iter() {
            self.publish_gathered(page);
        }
        let images = pages.iter().map(|(page, image)| {
            page.mark_dirty();
            (image.id(), &image.bytes()[..])
        });
        let record = Record::Images(images.collect());
        let lsn = self.log.append(&record);
        for (page, image) in pages {
            page.put(0, image.bytes());
            page.set_lsn(lsn);
        }
    }

    /// Appends the records of a node that were gathered, before another one of it.
    fn publish_gathered(&self, page: &PageWrite) {
        if let Some(buffer) = page.take_gathered() {
            self.log.publish(buffer);
        }
    }
}

/// Makes a logged change of one page.
pub fn apply(record: &Record, page: &mut impl PageMut, record_bytes: usize) {
    match record {
        Record::Format(id) => page.format(*id, kind::DATA),
        Record::Slot(change) => slots::write(
            page,
            change.position.slot,
            record_bytes,
            change.state_after,
            usize::from(change.offset),
            change.after,
        ),
        Record::EntryIn(_, index, entry) => node::insert(page, usize::from(*index), entry),
        Record::EntryOut(_, index, bytes) => {
            node::remove(page, usize::from(*index), usize::from(*bytes));
        }
        Record::Images(_)
        | Record::Commit { .. }
        | Record::Finished { .. }
        | Record::Forced { .. } => {
            unreachable!("these records change no page by themselves")
        }
    }
}

/// Whether a record of the log can be applied to a page: a page that is blank, or another one than the
/// log knows, is damaged.
fn is_applicable(record: &Record, page: &PageBytes, record_bytes: usize) -> bool {
    let node_has = |entry_bytes: usize, entries: usize, index: usize| {
        page.kind() == kind::NODE
            && index < entries
            && entry_bytes > 0
            && entries * entry_bytes <= PAGE_BYTES - BODY
    };
    match record {
        Record::Slot(change) => slots::read(page, change.position.slot, record_bytes).is_some(),
        Record::EntryIn(_, index, entry) => {
            node_has(entry.len(), page.count() + 1, usize::from(*index))
        }
        Record::EntryOut(_, index, bytes) => {
            node_has(usize::from(*bytes), page.count(), usize::from(*index))
        }
        Record::Format(_)
        | Record::Images(_)
        | Record::Commit { .. }
        | Record::Finished { .. }
        | Record::Forced { .. } => true,
    }
}

/// Whether a record can be applied to a page of a file with records of a length.
pub fn can_redo(record: &Record, page: &PageBytes, record_bytes: usize) -> bool {
    let is_sound = match record {
        Record::Slot(change) => fits(change, record_bytes),
        _ => true,
    };
    is_sound && is_applicable(record, page, record_bytes)
}

/// Up to where the files reach while the log is applied to them at a start. Pages are taken one after the
/// other, so no engine has written a record of a page far behind the end of its file.
#[derive(Debug, Default)]
pub struct Reach(BTreeMap<u32, u64>);

/// Operations that failed may have taken pages without a record.
const PAGES_AHEAD: u64 = 1 << 16;

impl Reach {
    /// A file has so many bytes.
    pub fn add(&mut self, file: u32, bytes: u64) {
        self.0.insert(file, bytes.div_ceil(PAGE_BYTES as u64));
    }

    /// Whether the pages of a record can be those of files; from now on they are.
    pub fn covers(&mut self, record: &Record) -> bool {
        record.pages().into_iter().all(|id| {
            let pages = self.0.entry(id.file).or_default();
            let number = u64::from(id.number);
            let is_near = number <= *pages + PAGES_AHEAD;
            if is_near {
                *pages = (*pages).max(number + 1);
            }
            is_near
        })
    }
}

/// Whether a change of a slot fits into records of a length, before and after.
fn fits(change: &SlotChange, record_bytes: usize) -> bool {
    let longest = change.before.len().max(change.after.len());
    usize::from(change.offset) + longest <= record_bytes
        && usize::from(change.position.slot) < slots::slots_per_page(record_bytes)
}

impl Store {
    /// Redoes a logged change on each page that does not have it yet. The others are written again, too:
    /// forcing them to the disk may have failed, and then the kernel shows what the disk does not have.
    ///
    /// `record_bytes` is the length of the records of a file, `None` if there is no such file.
    ///
    /// # Errors
    /// If a page cannot be read, or is not as the log knows it.
    pub fn redo(
        &self,
        record: &Record,
        lsn: u64,
        record_bytes: impl Fn(u32) -> Option<usize>,
    ) -> Result<(), Fault> {
        let known = |id: PageId| {
            record_bytes(id.file).ok_or_else(|| {
                let text = format!("the log refers to {id}, and there is no such file");
                Fault::Damaged(text)
            })
        };
        let id = match record {
            Record::Images(images) => {
                for (id, image) in images {
                    known(*id)?;
                    self.redo_image(*id, image, lsn)?;
                }
                return Ok(());
            }
            Record::Commit { .. } | Record::Finished { .. } | Record::Forced { .. } => {
                return Ok(());
            }
            Record::Format(id) | Record::EntryIn(id, ..) | Record::EntryOut(id, ..) => *id,
            Record::Slot(change) => change.page(),
        };
        let record_bytes = known(id)?;
        let mut page = self.write(id)?;
        let is_older = page.lsn() < lsn;
        let is_sound = match record {
            Record::Slot(change) => fits(change, record_bytes),
            _ => true,
        };
        if !is_sound || is_older && !is_applicable(record, &page, record_bytes) {
            return Err(Fault::Damaged(format!(
                "{id}, from byte {} of the file on, is not as the log before byte {lsn} knows it",
                u64::from(id.number) * PAGE_BYTES as u64
            )));
        }
        page.mark_dirty();
        if is_older {
            apply(record, &mut page, record_bytes);
            page.set_lsn(lsn);
        }
        Ok(())
    }

    fn redo_image(&self, id: PageId, image: &[u8], lsn: u64) -> Result<(), Fault> {
        let mut page = self.write(id)?;
        page.mark_dirty();
        if page.lsn() < lsn {
            page.put(0, image);
            page.set_lsn(lsn);
        }
        Ok(())
    }
}
