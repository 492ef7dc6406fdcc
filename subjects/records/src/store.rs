//! Logged changes of pages: the only way in which a page changes.
//!
//! A log record describes a change, and [`apply`] makes it, at once and again after a crash.

use crate::cache::{Cache, PageRead, PageWrite};
use crate::error::Fault;
use crate::log::Log;
use crate::log::record::{Record, SlotChange};
use crate::node;
use crate::page::{Page, PageId, kind};
use crate::slots;

/// The cache and the log, which depend on each other.
pub struct Store {
    pub cache: Cache,
    pub log: Log,
}

impl Store {
    pub fn read(&self, id: PageId) -> Result<PageRead<'_>, Fault> {
        self.cache.read(&self.log, id)
    }

    pub fn write(&self, id: PageId) -> Result<PageWrite<'_>, Fault> {
        self.cache.write(&self.log, id)
    }

    pub fn create(&self, id: PageId) -> Result<PageWrite<'_>, Fault> {
        self.cache.create(&self.log, id)
    }

    /// Logs a change of one page, and makes it.
    pub fn change(&self, page: &mut PageWrite, record: &Record, record_bytes: usize) {
        page.mark_dirty();
        let lsn = self.log.append(record);
        apply(record, page.page_mut(), record_bytes);
        page.page_mut().set_lsn(lsn);
    }

    /// Logs new contents of several pages as one record, and writes them to the pages.
    pub fn replace(&self, pages: &mut [(PageWrite, Page)]) {
        let images = pages.iter().map(|(page, image)| {
            page.mark_dirty();
            (image.id(), &image.bytes()[..])
        });
        let record = Record::Images(images.collect());
        let lsn = self.log.append(&record);
        for (page, image) in pages {
            page.page_mut().bytes_mut().copy_from_slice(image.bytes());
            page.page_mut().set_lsn(lsn);
        }
    }
}

/// Makes a logged change of one page.
fn apply(record: &Record, page: &mut Page, record_bytes: usize) {
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
        Record::Images(_) | Record::Commit { .. } | Record::Finished { .. } => {
            unreachable!("these records change no page by themselves")
        }
    }
}

impl Store {
    /// Redoes a logged change on each page that does not have it yet.
    ///
    /// `record_bytes` is the length of the records of a file, `None` if there is no such file.
    pub fn redo(
        &self,
        record: &Record,
        lsn: u64,
        record_bytes: impl Fn(u32) -> Option<usize>,
    ) -> Result<(), Fault> {
        let id = match record {
            Record::Images(images) => {
                for (id, image) in images {
                    self.redo_image(*id, image, lsn)?;
                }
                return Ok(());
            }
            Record::Commit { .. } | Record::Finished { .. } => return Ok(()),
            Record::Format(id) | Record::EntryIn(id, ..) | Record::EntryOut(id, ..) => *id,
            Record::Slot(change) => page_of(change),
        };
        let Some(record_bytes) = record_bytes(id.file) else {
            let text = format!("the log refers to {id}, and there is no such file");
            return Err(Fault::Damaged(text));
        };
        let mut page = self.write(id)?;
        if page.lsn() < lsn {
            page.mark_dirty();
            apply(record, page.page_mut(), record_bytes);
            page.page_mut().set_lsn(lsn);
        }
        Ok(())
    }

    fn redo_image(&self, id: PageId, image: &[u8], lsn: u64) -> Result<(), Fault> {
        let mut page = self.write(id)?;
        if page.lsn() < lsn {
            page.mark_dirty();
            page.page_mut().bytes_mut().copy_from_slice(image);
            page.page_mut().set_lsn(lsn);
        }
        Ok(())
    }
}

/// The page that a change of a slot is on.
pub fn page_of(change: &SlotChange) -> PageId {
    PageId {
        file: change.file,
        number: change.position.page,
    }
}
