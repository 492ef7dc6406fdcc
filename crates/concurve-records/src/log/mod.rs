//! The write-ahead log: an endless row of bytes, kept in files named after where they begin.
//!
//! Records are appended to a buffer in memory, in a critical section as short as a copy. Whoever
//! needs a record on the disk takes the writer, and writes all that was appended until then: those
//! who came to the writer meanwhile find their records written. That is group commit.

pub mod read;
pub mod record;
mod spare;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use concurve_latch::{Condvar, Mutex, MutexGuard};

use crate::classes;
use crate::error::{Fault, While};
use crate::log::record::Record;
use crate::log::spare::Spares;
use crate::status::Status;
use crate::storage::{Disk, Storage};

/// More than this in the buffer is written, whether somebody waits for it or not.
const BUFFER_BYTES: usize = 1 << 20;

/// How often it is looked whether somebody else writes one's records, before one sleeps.
const LOOKS: usize = 300;

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

struct Writer {
    file: Arc<dyn Disk>,
    /// LSN of its first byte.
    file_start: u64,
    /// Files before that one that were not forced to the disk.
    unsynced: Vec<Arc<dyn Disk>>,
    /// The buffer that is not in use.
    spare: Vec<u8>,
    /// A write failed: what is on the disk is not known.
    failure: Option<(String, Status)>,
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

    /// Makes all before `lsn` as durable as asked for.
    pub fn make_durable(&self, lsn: u64, durability: Durability) -> Result<(), Fault> {
        match durability {
            Durability::None => self.write_to(lsn),
            Durability::Group => self.sync_to(lsn),
            Durability::Each => self.sync(self.writer()),
        }
    }

    /// Gives all before `lsn` to the kernel.
    pub fn write_to(&self, lsn: u64) -> Result<(), Fault> {
        let Some(mut writer) = self.writer_unless(|| self.written() >= lsn) else {
            return Ok(());
        };
        self.write(&mut writer)
    }

    /// The writer, or `None` as soon as somebody else has done what it is wanted for.
    ///
    /// A write takes a few microseconds: whoever sleeps meanwhile costs the writer a system call to
    /// wake him, and finds that his records are written. So it is looked for a while.
    fn writer_unless(&self, is_done: impl Fn() -> bool) -> Option<MutexGuard<'_, Writer>> {
        for _ in 0..LOOKS {
            if is_done() {
                return None;
            }
            if let Some(writer) = self.writer.try_lock() {
                return (!is_done()).then_some(writer);
            }
            std::hint::spin_loop();
        }
        let writer = self.writer();
        (!is_done()).then_some(writer)
    }

    /// Forces all before `lsn` to the disk: one does it for all who wait.
    pub fn sync_to(&self, lsn: u64) -> Result<(), Fault> {
        if self.synced.load(Ordering::Acquire) >= lsn {
            return Ok(());
        }
        let mut is_forcing = self.is_forcing.lock();
        while *is_forcing {
            // Not a queue for the writer: all whose records are there go on at once.
            self.forced.wait(&mut is_forcing);
            if self.synced.load(Ordering::Acquire) >= lsn {
                return Ok(());
            }
        }
        *is_forcing = true;
        drop(is_forcing);
        let done = self.sync(self.writer());
        *self.is_forcing.lock() = false;
        self.forced.notify_all();
        done
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

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock()
    }

    fn write(&self, writer: &mut Writer) -> Result<(), Fault> {
        if let Some((text, status)) = &writer.failure {
            return Err(Fault::Stopped(text.clone(), *status));
        }
        let written = self.write_buffer(writer);
        note(writer, written)
    }

    fn write_buffer(&self, writer: &mut Writer) -> Result<(), Fault> {
        let start = {
            let mut buffer = self.buffer.lock();
            let start = buffer.start;
            buffer.start += buffer.bytes.len() as u64;
            std::mem::swap(&mut buffer.bytes, &mut writer.spare);
            start
        };
        let end = start + writer.spare.len() as u64;
        if start - writer.file_start >= self.file_bytes {
            let file = self.spares.start_file(self.storage.as_ref(), start)?;
            writer
                .unsynced
                .push(std::mem::replace(&mut writer.file, file));
            writer.file_start = start;
        }
        writer
            .file
            .write_at(&writer.spare, start - writer.file_start)
            .when(|| "append to the log".to_owned())?;
        writer.spare.clear();
        self.written.store(end, Ordering::Release);
        Ok(())
    }

    fn sync(&self, mut writer: MutexGuard<'_, Writer>) -> Result<(), Fault> {
        self.write(&mut writer)?;
        let end = self.written.load(Ordering::Acquire);
        let synced = sync_files(&writer);
        note(&mut writer, synced)?;
        writer.unsynced.clear();
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.synced.store(end, Ordering::Release);
        Ok(())
    }
}

/// After a failure, what is on the disk is not known, and nothing may be promised any more.
fn note(writer: &mut Writer, result: Result<(), Fault>) -> Result<(), Fault> {
    if let Err(fault) = &result {
        writer.failure = Some((fault.to_string(), fault.status()));
    }
    result
}

fn sync_files(writer: &Writer) -> Result<(), Fault> {
    for file in writer.unsynced.iter().chain([&writer.file]) {
        file.sync()
            .when(|| "force the log to the disk".to_owned())?;
    }
    Ok(())
}
