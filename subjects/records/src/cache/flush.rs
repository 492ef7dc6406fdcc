//! Writing changed pages to the disk, safe against torn writes.
//!
//! A batch of pages is written to the file `pages.double` first (a double write buffer), and forced
//! to the disk; then each page is written to its place, and the files are forced. A page that is
//! torn in its place is intact in `pages.double`. The log is forced before the pages whose changes
//! it describes.

use std::sync::atomic::Ordering::Relaxed;

use crate::cache::Cache;
use crate::cache::double::{BATCH, DoubleWrite};
use crate::cache::frame::Pin;
use crate::error::Fault;
use crate::extents::{BLANK_MAX, Extent};
use crate::log::Log;
use crate::page::{BODY, PAGE_BYTES, Page, PageHeader, PageId, PageMut, kind};
use crate::storage::Storage;

/// The right to write pages: two batches at once would overwrite each other in the double write
/// buffer.
pub struct Flusher {
    double: DoubleWrite,
}

impl Flusher {
    pub fn open(storage: &dyn Storage) -> Result<Self, Fault> {
        let double = DoubleWrite::open(storage)?;
        Ok(Self { double })
    }
}

/// Pages that are written together where a session waits for one to be evicted.
const BATCH_TO_EVICT: usize = 64;

/// A copy of a page of a batch, pinned until it is on the disk: if the page were evicted before,
/// its old contents would be read again.
type Copied<'a> = (Pin<'a>, Page);

impl Cache {
    /// Writes all pages that were changed before the call; those changed during it may be written.
    ///
    /// The guard that `latch` returns is held while pages are copied.
    pub fn flush_all<T>(&self, log: &Log, latch: impl Fn() -> T) -> Result<(), Fault> {
        // Pages of a batch cannot be evicted: a share of the cache at most.
        let most = (self.frames.len() / 8).clamp(BATCH_TO_EVICT, BATCH);
        let mut rest: Vec<usize> = (0..self.frames.len()).collect();
        while !rest.is_empty() {
            let held = latch();
            let mut flusher = self.files.flusher.lock();
            let (batch, after) = self.collect(log, &rest, most);
            drop(held);
            if batch.is_empty() {
                std::thread::yield_now();
            }
            self.write_batch(log, &mut flusher, batch)?;
            drop(flusher);
            // The log goes on meanwhile, and may need its next file before all pages are written.
            log.prepare_files()?;
            rest = after;
        }
        Ok(())
    }

    /// Writes one batch, so that some pages can be evicted; false if none could be written.
    pub(super) fn flush_some(&self, log: &Log) -> Result<bool, Fault> {
        let mut flusher = self.files.flusher.lock();
        let hand = self.clock.hand.load(Relaxed) % self.frames.len();
        let frames: Vec<usize> = (hand..self.frames.len()).chain(0..hand).collect();
        let (batch, _) = self.collect(log, &frames, BATCH_TO_EVICT);
        let some = !batch.is_empty();
        self.write_batch(log, &mut flusher, batch)?;
        Ok(some)
    }

    /// Copies pages that changed, until a batch has as many as it may have; returns the frames that remain.
    ///
    /// Does not wait for latches: their holder may wait for the flusher, which is this thread.
    fn collect(&self, log: &Log, frames: &[usize], most: usize) -> (Vec<Copied<'_>>, Vec<usize>) {
        // All changes that are in the log now are on their pages.
        let known = if log.gathers() { log.end() } else { 0 };
        let (mut batch, mut rest) = (Vec::new(), Vec::new());
        for (at, index) in frames.iter().enumerate() {
            if batch.len() == most {
                rest.extend_from_slice(&frames[at..]);
                break;
            }
            match self.copy(log, *index, known) {
                Ok(copied) => batch.extend(copied),
                Err(Busy) => rest.push(*index),
            }
        }
        (batch, rest)
    }

    /// The frame's page, if it changed. The page has all of its changes that are in the log before the byte
    /// `known`. A page of records may have later ones, which were gathered: to redo them once more does no
    /// harm. To redo that of a node would, so these are put into the log before the copy says how much of it
    /// the node has.
    fn copy(&self, log: &Log, index: usize, known: u64) -> Result<Option<Copied<'_>>, Busy> {
        let frame = &self.frames[index];
        if !frame.is_dirty() {
            return Ok(None);
        }
        let Some(id) = frame.id() else {
            return Ok(None);
        };
        let pin = {
            let _stripe = self.table.stripe(id);
            if !frame.has(id) {
                return Ok(None);
            }
            frame.pin_in_table()
        };
        let page = frame.try_read().ok_or(Busy)?;
        if !frame.take_dirty() {
            return Ok(None);
        }
        let mut copy = Page::from(&*page);
        let known = match frame.take_gathered() {
            Some(buffer) => {
                log.publish(buffer);
                log.end()
            }
            None => known,
        };
        drop(page);
        if copy.lsn() < known && copy.kind() != kind::BLANK {
            copy.set_lsn(known);
        }
        Ok(Some((pin, copy)))
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
                pin.mark_dirty();
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
        log.sync_before_pages(lsn.unwrap_or(0))?;
        batch.sort_by_key(|(_, page)| page.id());
        batch.iter_mut().for_each(|(_, page)| page.seal());
        let written = flusher.double.write(batch.iter().map(|it| &it.1))?;
        let mut rest = &written[PAGE_BYTES..];
        // Pages that follow each other in their file are written together.
        for run in batch.chunk_by(|one, other| one.1.id().is_before(other.1.id())) {
            let first = run[0].1.id();
            let (bytes, after) = rest.split_at(run.len() * PAGE_BYTES);
            self.disk(first.file)
                .write_at(bytes, place(first))
                .map_err(Fault::io(|| format!("write {first} and those after it")))?;
            rest = after;
        }
        for of_file in batch.chunk_by(|one, other| one.1.id().file == other.1.id().file) {
            let file = of_file[0].1.id().file;
            self.disk(file)
                .sync()
                .map_err(Fault::io(|| format!("force file {file} to the disk")))?;
        }
        Ok(())
    }

    /// At a start: restores torn pages from the double write buffer.
    pub fn restore_torn(&self, files: u32) -> Result<(), Fault> {
        let flusher = self.files.flusher.lock();
        let copies = flusher.double.read()?;
        let mut copies = copies.iter().filter(|it| it.id().file < files);
        copies.try_for_each(|copy| self.restore(copy.id(), copy))
    }

    /// Notes which pages of a file are on the disk, after [`Cache::flush_all`]. `before` is what was
    /// noted last.
    pub fn extent(&self, before: Extent) -> Result<Extent, Fault> {
        // No page is being written, and all that were are forced to the disk.
        let _flusher = self.files.flusher.lock();
        let disk = self.disk(before.file);
        let what = || format!("read the file {}", before.name);
        let length = disk.length().map_err(Fault::io(what))?;
        let pages = u32::try_from(length / PAGE_BYTES as u64).unwrap_or(u32::MAX);
        let mut blank = Vec::new();
        for number in before.blank.iter().copied().chain(before.pages..pages) {
            let id = PageId {
                file: before.file,
                number,
            };
            let mut header = [0; BODY];
            disk.read_at(&mut header, place(id))
                .map_err(Fault::io(what))?;
            if header == [0; BODY] {
                blank.push(number);
            }
            if blank.len() > BLANK_MAX {
                break;
            }
        }
        let pages = match blank.get(BLANK_MAX) {
            Some(end) => *end,
            None => pages.max(before.pages),
        };
        blank.truncate(BLANK_MAX);
        Ok(Extent {
            pages,
            blank,
            ..before
        })
    }

    fn restore(&self, id: PageId, copy: &Page) -> Result<(), Fault> {
        let disk = self.disk(id.file);
        let mut page = Page::blank();
        disk.read_at(page.bytes_mut(), place(id))
            .map_err(Fault::io(|| format!("read {id}")))?;
        // A whole page may be in the kernel's cache alone, and the next batch overwrites its copy.
        let whole = match page.is_whole(id) && !page.is_blank() {
            true => &page,
            false => copy,
        };
        let what = || format!("mend {id}");
        disk.write_at(whole.bytes(), place(id))
            .map_err(Fault::io(what))?;
        disk.sync().map_err(Fault::io(what))
    }
}

/// Another thread changes the page now.
struct Busy;

/// Where in its file a page is.
fn place(id: PageId) -> u64 {
    u64::from(id.number) * PAGE_BYTES as u64
}
