//! The write-ahead log: an unbounded sequence of bytes, in files named after the byte where they
//! begin.
//!
//! A record is appended to a buffer in memory, in a critical section as short as a copy. A thread
//! that needs a record on the disk takes the writer, and writes all that was appended until then.
//! Threads that waited for the writer in the meantime find their records written: group commit.

pub(crate) mod files;
pub(crate) mod forced;
pub mod read;
pub mod record;
mod writer;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use concurve_latch::{Condvar, Mutex};

use crate::classes;
use crate::counted::AtomicU64;
use crate::error::Fault;
use crate::log::files::{Spares, file_name, file_start};
use crate::log::forced::{Forced, Mark};
use crate::log::read::firsts;
use crate::log::record::Record;
use crate::log::writer::Writer;
use crate::storage::Storage;

/// A larger buffer is written, even if no thread waits for it.
const BUFFER_BYTES: usize = 1 << 20;

/// What an acknowledged transaction survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process, also by SIGKILL: its records were written to the kernel. After a
    /// power loss, the newest transactions may be missing, but none is incomplete.
    None,
    /// Power loss: its records were forced to the disk, together with those of other transactions
    /// that committed at that time.
    Group,
    /// As `Group`, but each transaction forces its own records.
    Each,
}

/// The log, open for appending.
pub struct Log {
    storage: Arc<dyn Storage>,
    spares: Spares,
    /// The log continues in another file when one has this length.
    file_bytes: u64,
    buffer: Mutex<Buffer>,
    writer: Mutex<Writer>,
    /// A thread forces the log to the disk, also for others.
    is_forcing: Mutex<bool>,
    /// Notified when it has done so.
    forced: Condvar,
    /// All before this byte was written to the kernel.
    written: AtomicU64,
    /// All before this byte was forced to the disk.
    synced: AtomicU64,
    syncs: AtomicU64,
    /// Its end when it was opened.
    begin: u64,
}

/// Removes the files of the log that begin after a byte. Returns the file `forced`, which names none of
/// them.
fn remove_after(storage: &dyn Storage, end: u64) -> Result<Forced, Fault> {
    let mark = Mark::find(storage)?;
    let mut forced = Forced::open(storage, mark)?;
    let firsts = firsts(storage, end)?;
    let (kept, removed) = firsts.split_at(firsts.partition_point(|it| *it <= end));
    if removed.is_empty() {
        return Ok(forced);
    }
    forced.note_file(kept.first().copied().unwrap_or(end), 0)?;
    for first in removed {
        let name = file_name(*first);
        let what = || format!("remove the file {name} of the log");
        storage.remove(&name).map_err(Fault::io(what))?;
    }
    let synced = storage.sync_names();
    synced.map_err(Fault::io(|| "remove files of the log".to_owned()))?;
    Ok(forced)
}

struct Buffer {
    /// LSN of its first byte.
    start: u64,
    bytes: Vec<u8>,
}

impl Log {
    /// Continues at a byte of the log, in a new file. What follows that byte is given up: it must be
    /// torn, and never was acknowledged.
    pub fn open(storage: Arc<dyn Storage>, end: u64, file_bytes: u64) -> Result<Self, Fault> {
        let spares = Spares::find(storage.as_ref(), file_bytes)?;
        spares.prepare(storage.as_ref())?;
        let mut forced = remove_after(storage.as_ref(), end)?;
        if forced.names(end) {
            // An earlier start has begun here, too; its file is replaced by one that may be shorter.
            forced.note_file(end, 0)?;
        }
        let (file, length) = spares.start_file(storage.as_ref(), end)?;
        forced.begin(storage.boot(), end);
        forced.note_file(end, length)?;
        Ok(Self {
            storage,
            spares,
            file_bytes,
            buffer: classes::log().mutex(Buffer {
                start: end,
                bytes: Vec::with_capacity(BUFFER_BYTES + BUFFER_BYTES / 4),
            }),
            writer: classes::log_writer().mutex(Writer {
                file,
                file_start: end,
                unsynced: Vec::new(),
                forced,
                noted: end,
                spare: Vec::with_capacity(BUFFER_BYTES + BUFFER_BYTES / 4),
                failure: None,
            }),
            is_forcing: classes::log_writer().mutex(false),
            forced: Condvar::new(),
            written: AtomicU64::new(end),
            synced: AtomicU64::new(end),
            syncs: AtomicU64::new(0),
            begin: end,
        })
    }

    /// Appends a record in memory; returns its end.
    pub fn append(&self, record: &Record) -> u64 {
        let mut framed = Vec::with_capacity(256);
        record::frame(record, &mut framed);
        let mut buffer = self.buffer.lock();
        let lsn = buffer.start + buffer.bytes.len() as u64;
        record::set_lsn(&mut framed, lsn);
        buffer.bytes.extend_from_slice(&framed);
        lsn + framed.len() as u64
    }

    /// Where the next record will begin.
    pub fn end(&self) -> u64 {
        let buffer = self.buffer.lock();
        buffer.start + buffer.bytes.len() as u64
    }

    /// All before this byte was written to the kernel.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// How often the log was forced to the disk.
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Bytes written since the log was opened.
    pub fn bytes_written(&self) -> u64 {
        self.written() - self.begin
    }

    /// Writes the buffer if it has grown large. To be called without latches.
    pub fn flush_if_large(&self) -> Result<(), Fault> {
        let (length, end) = {
            let buffer = self.buffer.lock();
            (buffer.bytes.len(), buffer.start + buffer.bytes.len() as u64)
        };
        if length > BUFFER_BYTES {
            self.write_to(end)?;
        }
        Ok(())
    }

    /// Whether there is no spare file.
    pub fn wants_spare(&self) -> bool {
        self.spares.is_wanted()
    }

    /// Makes a spare file if there is none.
    pub fn prepare_spare(&self) -> Result<(), Fault> {
        self.spares.prepare(self.storage.as_ref())
    }

    /// Frees the files that end before `lsn`.
    pub fn forget_before(&self, lsn: u64) -> Result<(), Fault> {
        let names = self
            .storage
            .names()
            .map_err(Fault::io(|| "list the log".to_owned()))?;
        let mut starts: Vec<u64> = names.iter().filter_map(|it| file_start(it)).collect();
        starts.sort_unstable();
        for pair in starts.windows(2).filter(|pair| pair[1] <= lsn) {
            let name = file_name(pair[0]);
            self.spares.keep(self.storage.as_ref(), &name)?;
        }
        Ok(())
    }
}
