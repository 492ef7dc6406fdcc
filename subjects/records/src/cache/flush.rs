//! Writing changed pages to the disk, safe against torn writes.
//!
//! A batch of pages is written to the file `pages.double` first (a double write buffer), and forced
//! to the disk; then each page is written to its place, and the files are forced. A page that is
//! torn in its place is intact in `pages.double`. The log is forced before the pages whose changes
//! it describes.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

use crate::cache::Cache;
use crate::cache::double::{BATCH, DoubleWrite};
use crate::cache::frame::Pin;
use crate::error::{Failure, Fault};
use crate::extents::{BLANK_MAX, Extent};
use crate::log::Log;
use crate::page::{BODY, PAGE_BYTES, Page, PageBytes, PageCopy, PageHeader, PageId, PageMut, kind};
use crate::storage::{DIRECT_BYTES, Storage};

/// The right to write pages: two batches at once would overwrite each other in the double write
/// buffer.
pub struct Flusher {
    double: DoubleWrite,
    /// The double write buffer may have the only copy of a page that is torn in its place.
    failure: Failure,
}

impl Flusher {
    pub fn open(storage: &dyn Storage) -> Result<Self, Fault> {
        let double = DoubleWrite::open(storage)?;
        let failure = Failure::default();
        Ok(Self { double, failure })
    }
}

/// Pages that are written together where a session waits for one to be evicted.
const BATCH_TO_EVICT: usize = 64;

/// Pages that are written together, as they are in the double write buffer. Its memory serves one batch after
/// the other.
struct Batch<'a> {
    /// They are pinned until they are on the disk: if one were evicted before, its old contents would be read
    /// again.
    pins: Vec<Pin<'a>>,
    /// From [`Batch::begin`] on: a page for the header of the double write buffer, and then the copies.
    memory: Vec<u8>,
    /// So that they can be written past the cache of the kernel.
    begin: usize,
}

impl<'a> Batch<'a> {
    /// With room for some pages.
    fn of(most: usize) -> Self {
        // It does not grow: so it stays where it is.
        let mut memory = Vec::<u8>::with_capacity(DIRECT_BYTES + (most + 1) * PAGE_BYTES);
        let begin = memory.as_ptr().align_offset(DIRECT_BYTES);
        memory.resize(begin + PAGE_BYTES, 0);
        Self {
            pins: Vec::with_capacity(most),
            memory,
            begin,
        }
    }

    fn len(&self) -> usize {
        self.pins.len()
    }

    fn add(&mut self, pin: Pin<'a>, page: &PageBytes) -> PageCopy<'_> {
        let at = self.memory.len();
        self.memory.extend_from_slice(page);
        self.pins.push(pin);
        PageCopy::of(&mut self.memory[at..])
    }

    /// As they are in the double write buffer.
    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.begin..]
    }

    fn pages(&self) -> &[PageBytes] {
        self.memory[self.begin + PAGE_BYTES..].as_chunks().0
    }

    fn seal(&mut self) {
        let copies = self.bytes()[PAGE_BYTES..].chunks_mut(PAGE_BYTES);
        copies.for_each(|it| PageCopy::of(it).seal());
    }

    fn clear(&mut self) {
        self.pins.clear();
        self.memory.truncate(self.begin + PAGE_BYTES);
    }
}

impl Cache {
    /// Writes all pages that were changed before the call; those changed during it may be written.
    ///
    /// The guard that `latch` returns is held while pages are copied.
    pub fn flush_all<T>(&self, log: &Log, latch: impl Fn() -> T) -> Result<(), Fault> {
        // Pages of a batch cannot be evicted: a share of the cache at most.
        let most = (self.frames.len() / 8).clamp(BATCH_TO_EVICT, BATCH);
        let mut rest = {
            // Who writes pages now has marked them as unchanged, and will be done or mark them again.
            let _flusher = self.files.flusher.lock();
            self.in_order(self.changed(0))
        };
        let mut batch = Batch::of(most.min(rest.len()));
        while !rest.is_empty() {
            let held = latch();
            let mut flusher = self.files.flusher.lock();
            rest = self.collect(log, &rest, most, &mut batch);
            drop(held);
            if batch.len() == 0 {
                std::thread::yield_now();
            }
            self.write_batch(log, &mut flusher, &mut batch)?;
            drop(flusher);
            // The log goes on meanwhile, and may need its next file before all pages are written.
            log.prepare_files()?;
        }
        Ok(())
    }

    /// Writes one batch, so that some pages can be evicted; false if none could be written.
    pub(super) fn flush_some(&self, log: &Log) -> Result<bool, Fault> {
        let mut flusher = self.files.flusher.lock();
        let hand = self.clock.hand.load(Relaxed) % self.frames.len();
        let mut batch = Batch::of(BATCH_TO_EVICT);
        for some in self.changed(hand).chunks(BATCH_TO_EVICT) {
            let some = self.in_order(some.to_vec());
            self.collect(log, &some, BATCH_TO_EVICT, &mut batch);
            if batch.len() > 0 {
                self.write_batch(log, &mut flusher, &mut batch)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The frames whose pages are changed, from one on and round to it. To be called with the flusher.
    fn changed(&self, first: usize) -> Vec<usize> {
        let frames = (first..self.frames.len()).chain(0..first);
        frames.filter(|it| self.frames[*it].is_dirty()).collect()
    }

    /// Frames in the order of their pages: so those that follow each other in a file are written in one call,
    /// and few batches have pages of a file, which each of them forces to the disk.
    fn in_order(&self, frames: Vec<usize>) -> Vec<usize> {
        let page = |it: usize| (self.frames[it].id(), it);
        let mut pages: Vec<_> = frames.into_iter().map(page).collect();
        pages.sort_unstable();
        pages.into_iter().map(|(_, frame)| frame).collect()
    }

    /// Copies pages that changed, until a batch has as many as it may have; returns the frames that remain.
    ///
    /// Does not wait for latches: their holder may wait for the flusher, which is this thread.
    fn collect<'a>(
        &'a self,
        log: &Log,
        frames: &[usize],
        most: usize,
        batch: &mut Batch<'a>,
    ) -> Vec<usize> {
        // All changes that are in the log now are on their pages.
        let known = if log.gathers() { log.end() } else { 0 };
        let mut rest = Vec::new();
        for (at, index) in frames.iter().enumerate() {
            if batch.len() == most {
                rest.extend_from_slice(&frames[at..]);
                break;
            }
            if let Err(Busy) = self.copy(log, *index, known, batch) {
                rest.push(*index);
            }
        }
        rest
    }

    /// Copies the frame's page, if it changed. The page has all of its changes that are in the log before the byte
    /// `known`. A page of records may have later ones, which were gathered: to redo them once more does no
    /// harm. To redo that of a node would, so these are put into the log before the copy says how much of it
    /// the node has.
    fn copy<'a>(
        &'a self,
        log: &Log,
        index: usize,
        known: u64,
        batch: &mut Batch<'a>,
    ) -> Result<(), Busy> {
        let frame = &self.frames[index];
        if !frame.is_dirty() {
            return Ok(());
        }
        let Some(id) = frame.id() else {
            return Ok(());
        };
        let pin = {
            let _stripe = self.table.stripe(id);
            if !frame.has(id) {
                return Ok(());
            }
            frame.pin_in_table()
        };
        let page = frame.try_read().ok_or(Busy)?;
        if !frame.take_dirty() {
            return Ok(());
        }
        let mut copy = batch.add(pin, &page);
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
        Ok(())
    }

    /// Writes a batch, which is empty then.
    fn write_batch(
        &self,
        log: &Log,
        flusher: &mut Flusher,
        batch: &mut Batch<'_>,
    ) -> Result<(), Fault> {
        if batch.len() == 0 {
            return Ok(());
        }
        let checked = flusher.failure.check();
        let written = checked.and_then(|()| self.write_pages(log, flusher, batch));
        let written = flusher.failure.remember(written);
        if written.is_err() {
            batch.pins.iter().for_each(|it| it.mark_dirty());
        }
        batch.clear();
        written
    }

    fn write_pages(
        &self,
        log: &Log,
        flusher: &mut Flusher,
        batch: &mut Batch<'_>,
    ) -> Result<(), Fault> {
        let lsn = batch.pages().iter().map(PageHeader::lsn).max();
        log.sync_before_pages(lsn.unwrap_or(0))?;
        batch.seal();
        flusher.double.write(batch.bytes())?;
        // Pages that follow each other in their file are written together.
        let pages = batch.pages();
        for run in pages.chunk_by(|one, other| one.id().is_before(other.id())) {
            let first = run[0].id();
            self.disk(first.file)
                .write_at(run.as_flattened(), place(first))
                .map_err(Fault::io(|| format!("write {first} and those after it")))?;
        }
        let files: BTreeSet<u32> = pages.iter().map(|it| it.id().file).collect();
        for file in files {
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
