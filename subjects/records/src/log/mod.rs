//! The write-ahead log: an endless row of bytes, kept in files named after where they begin.
//!
//! Records are appended to a buffer in memory, in a critical section as short as a copy. Whoever
//! needs a record on the disk takes the writer, and writes all that was appended until then: those
//! who came to the writer meanwhile find their records written. That is group commit.

pub mod read;
pub mod record;
mod spare;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use concurve_latch::{Condvar, Mutex};

use crate::classes;
use crate::error::{Fault, While};
use crate::log::record::Record;
use crate::log::spare::Spares;
use crate::log::writer::Writer;
use crate::storage::Storage;

/// More than this in the buffer is written, whether somebody waits for it or not.
const BUFFER_BYTES: usize = 1 << 20;

/// What an acknowledged transaction survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process, by SIGKILL too: its records were given to the kernel. After a loss of
    /// power, the newest transactions may be missing, each of them whole.
    None,
    /// The loss of power: its records were forced to the disk, together with those of others who
    /// committed at that time.
    Group,
    /// The same, but each transaction forces its own records, as if it were alone.
    Each,
}

/// The log, open for appending.
pub struct Log {
    storage: Arc<dyn Storage>,
    spares: Spares,
    /// A file is followed by another one once it is this long.
    file_bytes: u64,
    buffer: Mutex<Buffer>,
    writer: Mutex<Writer>,
    /// Somebody forces the log to the disk for others too.
    is_forcing: Mutex<bool>,
    /// He has done it.
    forced: Condvar,
    /// All before this byte was given to the kernel.
    written: AtomicU64,
    /// All before this byte was forced to the disk.
    synced: AtomicU64,
    syncs: AtomicU64,
    /// Where it was opened.
    begin: u64,
}

struct Buffer {
    /// LSN of its first byte.
    start: u64,
    bytes: Vec<u8>,
}

/// The name of the file that begins at a byte of the log.
pub fn file_name(start: u64) -> String {
    format!("log-{start:016x}")
}

/// Where the file of this name begins.
pub fn file_start(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix("log-")?, 16).ok()
}

impl Log {
    /// Goes on at a byte of the log, in a file of its own.
    pub fn open(storage: Arc<dyn Storage>, end: u64, file_bytes: u64) -> Result<Self, Fault> {
        let spares = Spares::find(storage.as_ref(), file_bytes)?;
        spares.prepare(storage.as_ref())?;
        let file = spares.start_file(storage.as_ref(), end)?;
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
        record::place(&mut framed, lsn);
        buffer.bytes.extend_from_slice(&framed);
        lsn + framed.len() as u64
    }

    /// Where the next record will begin.
    pub fn end(&self) -> u64 {
        let buffer = self.buffer.lock();
        buffer.start + buffer.bytes.len() as u64
    }

    /// A byte that the log has passed.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// How often it was forced to the disk.
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Bytes that were written since it was opened.
    pub fn bytes_written(&self) -> u64 {
        self.written() - self.begin
    }

    /// Writes the buffer if it has grown large. To be called without latches.
    pub fn relieve(&self) -> Result<(), Fault> {
        let (length, end) = {
            let buffer = self.buffer.lock();
            (buffer.bytes.len(), buffer.start + buffer.bytes.len() as u64)
        };
        if length > BUFFER_BYTES {
            self.write_to(end)?;
        }
        Ok(())
    }

    /// Whether [`Log::prepare`] has something to do.
    pub fn wants_spare(&self) -> bool {
        self.spares.is_wanted()
    }

    /// Makes a file ready to follow the one that is written.
    pub fn prepare(&self) -> Result<(), Fault> {
        self.spares.prepare(self.storage.as_ref())
    }

    /// Gives up files that end before `lsn`.
    pub fn forget_before(&self, lsn: u64) -> Result<(), Fault> {
        let names = self.storage.names().when(|| "list the log".to_owned())?;
        let mut starts: Vec<u64> = names.iter().filter_map(|it| file_start(it)).collect();
        starts.sort_unstable();
        for pair in starts.windows(2).filter(|pair| pair[1] <= lsn) {
            let name = file_name(pair[0]);
            self.spares.keep(self.storage.as_ref(), &name)?;
        }
        Ok(())
    }
}
