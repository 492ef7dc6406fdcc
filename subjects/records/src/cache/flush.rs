//! Writing changed pages to the disk, so that none is ever lost halfway.
//!
//! A batch of pages goes to the file `pages.double` first, and is forced to the disk there; then each
//! page goes to its place, and the files are forced. A page that is torn in its place is whole in
//! `pages.double`. The log is on the disk before the pages whose changes it tells.

use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use crate::cache::Cache;
use crate::cache::frame::Pin;
use crate::error::{Fault, While};
use crate::log::Log;
use crate::page::{PAGE_BYTES, Page, PageId};
use crate::storage::{Disk, Storage};

const NAME: &str = "pages.double";
/// Pages that are written together.
const BATCH: usize = 64;

/// Whoever has it writes pages; two batches at once would spoil each other.
pub struct Flusher {
    double: Arc<dyn Disk>,
}

impl Flusher {
    pub fn open(storage: &dyn Storage) -> Result<Self, Fault> {
        let double = storage
            .open(NAME)
            .when(|| format!("open the file {NAME}"))?;
        Ok(Self { double })
    }
}

/// A page of a batch: as it was, and pinned until it is on the disk. A page that was taken out of
/// the cache before would be read again as it was earlier.
type Copied<'a> = (Pin<'a>, Page);

impl Cache {
    /// Writes all pages that were changed before the call; those changed meanwhile may be written.
    ///
    /// `turn` is held while pages are looked at.
    pub fn flush_all<T>(&self, log: &Log, turn: impl Fn() -> T) -> Result<(), Fault> {
        let mut rest: Vec<usize> = (0..self.frames.len()).collect();
        while !rest.is_empty() {
            let held = turn();
            let mut flusher = self.flusher.lock();
            let (batch, after) = self.collect(&rest);
            drop(held);
            if batch.is_empty() {
                std::thread::yield_now();
            }
            self.write_batch(log, &mut flusher, batch)?;
            rest = after;
        }
        Ok(())
    }

    /// Writes one batch, so that some pages can be spared; false if none could be written.
    pub(super) fn flush_some(&self, log: &Log) -> Result<bool, Fault> {
        let mut flusher = self.flusher.lock();
        let hand = self.hand.load(Acquire) % self.frames.len();
        let frames: Vec<usize> = (hand..self.frames.len()).chain(0..hand).collect();
        let (batch, _) = self.collect(&frames);
        let some = !batch.is_empty();
        self.write_batch(log, &mut flusher, batch)?;
        Ok(some)
    }

    /// Copies pages that changed, until a batch is full; returns the frames that remain.
    ///
    /// Waits for no latch: whoever holds one may wait for the flusher, that is for us.
    fn collect(&self, frames: &[usize]) -> (Vec<Copied<'_>>, Vec<usize>) {
        let (mut batch, mut rest) = (Vec::new(), Vec::new());
        for (at, index) in frames.iter().enumerate() {
            if batch.len() == BATCH {
                rest.extend_from_slice(&frames[at..]);
                break;
            }
            match self.copy(*index) {
                Ok(copied) => batch.extend(copied),
                Err(Busy) => rest.push(*index),
            }
        }
        (batch, rest)
    }

    /// The frame's page, if it changed.
    fn copy(&self, index: usize) -> Result<Option<Copied<'_>>, Busy> {
        let frame = &self.frames[index];
        if !frame.is_dirty.load(Acquire) {
            return Ok(None);
        }
        let Some(id) = frame.id() else {
            return Ok(None);
        };
        let pin = {
            let stripe = self.stripe(id);
            if stripe.frames.get(&id) != Some(&index) {
                return Ok(None);
            }
            frame.pins.fetch_add(1, AcqRel);
            Pin(frame)
        };
        let content = frame.content.try_read().ok_or(Busy)?;
        if !frame.is_dirty.swap(false, AcqRel) {
            return Ok(None);
        }
        Ok(Some((pin, content.page.clone())))
    }

    fn write_batch(
        &self,
        log: &Log,
        flusher: &mut Flusher,
        mut batch: Vec<Copied<'_>>,
    ) -> Result<(), Fault> {
        if batch.is_empty() {
            return Ok(());
        }
        let written = self.write_pages(log, flusher, &mut batch);
        if written.is_err() {
            for (pin, _) in &batch {
                pin.0.is_dirty.store(true, Release);
            }
        }
        written
    }

    fn write_pages(
        &self,
        log: &Log,
        flusher: &mut Flusher,
        batch: &mut [Copied<'_>],
    ) -> Result<(), Fault> {
        let lsn = batch.iter().map(|(_, page)| page.lsn()).max();
        log.sync_to(lsn.unwrap_or(0))?;
        batch.sort_by_key(|(_, page)| page.id());
        let mut double = Vec::with_capacity(batch.len() * PAGE_BYTES);
        for (_, page) in batch.iter_mut() {
            page.seal();
            double.extend_from_slice(page.bytes());
        }
        let what = || format!("write the file {NAME}");
        flusher.double.write_at(&double, 0).when(what)?;
        flusher.double.sync().when(what)?;
        for (_, page) in batch.iter() {
            let id = page.id();
            self.disk(id.file)
                .write_at(page.bytes(), place(id))
                .when(|| format!("write {id}"))?;
        }
        for of_file in batch.chunk_by(|one, other| one.1.id().file == other.1.id().file) {
            let file = of_file[0].1.id().file;
            self.disk(file)
                .sync()
                .when(|| format!("force file {file} to the disk"))?;
        }
        Ok(())
    }

    /// After a start: mends pages that are torn in their place.
    pub fn restore_torn(&self, files: u32) -> Result<(), Fault> {
        let flusher = self.flusher.lock();
        let what = || format!("read the file {NAME}");
        let mut copy = Page::blank();
        for index in 0..BATCH {
            let at = (index * PAGE_BYTES) as u64;
            let read = flusher.double.read_at(copy.bytes_mut(), at).when(what)?;
            let id = copy.id();
            if read < PAGE_BYTES || copy.is_blank() || !copy.is_whole(id) || id.file >= files {
                continue;
            }
            self.restore(id, &copy)?;
        }
        Ok(())
    }

    fn restore(&self, id: PageId, copy: &Page) -> Result<(), Fault> {
        let disk = self.disk(id.file);
        let mut page = Page::blank();
        disk.read_at(page.bytes_mut(), place(id))
            .when(|| format!("read {id}"))?;
        if page.is_whole(id) {
            return Ok(());
        }
        let what = || format!("mend {id}");
        disk.write_at(copy.bytes(), place(id)).when(what)?;
        disk.sync().when(what)
    }
}

/// Somebody changes the page at this moment.
struct Busy;

/// Where in its file a page is.
fn place(id: PageId) -> u64 {
    u64::from(id.number) * PAGE_BYTES as u64
}
