//! The write-ahead log: an unbounded sequence of bytes, in files named after the byte where they
//! begin.
//!
//! A record is appended to a buffer in memory, in a critical section as short as a copy. A thread
//! that needs a record on the disk takes the writer, and writes all that was appended until then.
//! Threads that waited for the writer in the meantime find their records written: group commit.
//!
//! With latching by record, a session gathers the changes of a transaction, and appends them in one step
//! ([`gather`]). If a transaction need not survive a loss of power, records are put into the file of the
//! log through memory, and no thread calls the kernel ([`buffer`]).

mod buffer;
pub(crate) mod files;
pub(crate) mod forced;
mod gather;
pub mod read;
pub mod record;
mod writer;

pub(crate) use gather::buffer_of;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use concurve_latch::{Condvar, Mutex};
use crossbeam_utils::CachePadded;

use crate::classes;
use crate::counted::{AtomicBool, AtomicU64};
use crate::error::{Failure, Fault};
use crate::log::buffer::{Buffer, Target};
use crate::log::files::{Spares, file_name, file_start, name_durably};
use crate::log::forced::{Forced, Mark};
use crate::log::gather::Gathered;
use crate::log::read::firsts;
use crate::log::record::Record;
use crate::log::writer::Writer;
use crate::storage::{Disk, Storage};

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

/// How the log is kept.
#[derive(Debug, Clone, Copy)]
pub struct LogOptions {
    /// The log continues in another file when one has this length.
    pub file_bytes: u64,
    /// So many files there are between two checkpoints, at most.
    pub files: u64,
    /// Sessions gather their records.
    pub gathers: bool,
    /// Records are put into the file through memory, if the storage can do that.
    pub is_in_memory: bool,
}

impl LogOptions {
    /// The file of the log that begins at a byte, if records are to be put into it.
    fn target(&self, file: &Arc<dyn Disk>, first: u64) -> Option<Target> {
        self.is_in_memory.then(|| Target {
            file: Arc::clone(file),
            first,
            end: first + self.file_bytes,
        })
    }
}

/// The log, open for appending.
pub struct Log {
    storage: Arc<dyn Storage>,
    options: LogOptions,
    spares: CachePadded<Spares>,
    head: CachePadded<Head>,
    gathered: Gathered,
    is_gathering: AtomicBool,
    writer: CachePadded<Mutex<Writer>>,
    /// As the writer's, without its latch.
    is_unnamed: CachePadded<AtomicBool>,
    /// A thread forces the log to the disk, also for others.
    is_forcing: CachePadded<Mutex<bool>>,
    /// Notified when it has done so.
    forced: Condvar,
    /// All before this byte was forced to the disk.
    synced: CachePadded<AtomicU64>,
    syncs: AtomicU64,
    /// Its end when it was opened.
    begin: u64,
}

/// What each append writes: in one or two lines, because CPUs pass them on.
#[repr(C)]
struct Head {
    /// All before this byte was written to the kernel.
    written: AtomicU64,
    buffer: Mutex<Buffer>,
}

const _: () = assert!(size_of::<Head>() <= 128);

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

impl Log {
    /// Continues at a byte of the log, in a new file. What follows that byte is given up: it must be
    /// torn, and never was acknowledged.
    pub fn open(storage: Arc<dyn Storage>, end: u64, options: LogOptions) -> Result<Self, Fault> {
        let spares = Spares::find(storage.as_ref(), options.file_bytes, options.files)?;
        spares.prepare(storage.as_ref())?;
        let mut forced = remove_after(storage.as_ref(), end)?;
        if forced.names(end) {
            // An earlier start has begun here, too; its file is replaced by one that may be shorter.
            forced.note_file(end, 0)?;
        }
        let file = spares.start_file(storage.as_ref(), end)?;
        let length = name_durably(storage.as_ref(), file.as_ref(), end)?;
        forced.begin(storage.boot(), end);
        forced.note_file(end, length)?;
        let target = options.target(&file, end);
        Ok(Self {
            storage,
            options,
            spares: CachePadded::new(spares),
            head: CachePadded::new(Head {
                written: AtomicU64::new(end),
                buffer: classes::log().mutex(Buffer::new(end, target)),
            }),
            gathered: Gathered::new(),
            is_gathering: AtomicBool::new(false),
            writer: CachePadded::new(classes::log_writer().mutex(Writer {
                file,
                file_start: end,
                is_unnamed: false,
                target: None,
                unsynced: Vec::new(),
                forced,
                spare: Buffer::memory(),
                failure: Failure::default(),
            })),
            is_unnamed: CachePadded::new(AtomicBool::new(false)),
            is_forcing: CachePadded::new(classes::log_writer().mutex(false)),
            forced: Condvar::new(),
            synced: CachePadded::new(AtomicU64::new(end)),
            syncs: AtomicU64::new(0),
            begin: end,
        })
    }

    /// Appends a record in memory; returns its end.
    pub fn append(&self, record: &Record) -> u64 {
        self.append_frame(&mut record::frame(record))
    }

    /// Appends a frame, which is sealed; returns its end.
    fn append_frame(&self, frame: &mut [u8]) -> u64 {
        let synced = self.synced();
        let mut buffer = self.head.buffer.lock();
        let begin = buffer.end();
        let is_written = buffer.append(frame, synced);
        let end = buffer.end();
        if is_written {
            self.head.written.store(end, Ordering::Release);
        }
        let ahead = buffer.ahead(begin);
        drop(buffer);
        if let Some((file, at)) = ahead {
            file.prepare_put(at, buffer::PART_BYTES);
        }
        end
    }

    /// Where the next record will begin.
    pub fn end(&self) -> u64 {
        self.head.buffer.lock().end()
    }

    /// All before this byte was written to the kernel.
    fn written(&self) -> u64 {
        self.head.written.load(Ordering::Acquire)
    }

    /// All before this byte was forced to the disk.
    pub fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
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
            let buffer = self.head.buffer.lock();
            (buffer.len(), buffer.end())
        };
        if length > buffer::FULL_BYTES {
            self.write_to(end)?;
        }
        Ok(())
    }

    /// Whether the newest file is to be named on the disk, or a spare file is to be made.
    pub fn wants_files(&self) -> bool {
        self.wants_name() || self.spares.is_wanted()
    }

    /// Names the newest file on the disk and makes a spare file, if that is wanted: so no session waits
    /// for it.
    pub fn prepare_files(&self) -> Result<(), Fault> {
        self.name_newest()?;
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

/// What sessions gather.
impl Log {
    /// Whether sessions gather records, and so all changes in the log are on their pages, and maybe more.
    pub fn gathers(&self) -> bool {
        self.is_gathering.load(Ordering::Relaxed)
    }

    /// To be called when the log has been redone: until then, pages have less than is in the log.
    pub fn begin_to_gather(&self) {
        self.is_gathering
            .store(self.options.gathers, Ordering::Relaxed);
    }

    /// Adds a record to a buffer. To be called while its page is latched, and only if [`Log::gathers`].
    pub fn gather(&self, buffer: u32, record: &Record) {
        let mut gathered = self.gathered.lock(buffer);
        record::add(record, &mut gathered);
        if gathered.len() >= gather::BYTES_MAX {
            self.append_gathered(&mut gathered);
        }
    }

    /// Appends what a buffer has, and a record after it, in one frame; returns the end of that.
    pub fn append_last(&self, buffer: u32, record: &Record) -> u64 {
        if !self.gathers() {
            return self.append(record);
        }
        let mut gathered = self.gathered.lock(buffer);
        record::add(record, &mut gathered);
        self.append_all(&mut gathered)
    }

    /// Appends what a buffer has.
    pub fn publish(&self, buffer: u32) {
        if self.gathers() {
            self.append_gathered(&mut self.gathered.lock(buffer));
        }
    }

    fn append_gathered(&self, gathered: &mut Vec<u8>) {
        if !gathered.is_empty() {
            self.append_all(gathered);
        }
    }

    /// Appends a frame that was gathered, which is empty then; returns its end.
    fn append_all(&self, gathered: &mut Vec<u8>) -> u64 {
        record::seal(gathered);
        let end = self.append_frame(gathered);
        gathered.clear();
        end
    }

    /// Forces the log to the disk up to the last change on pages that were copied, of which `newest` is
    /// the greatest LSN. A change that was gathered is on its page without its LSN.
    pub fn sync_before_pages(&self, newest: u64) -> Result<(), Fault> {
        if !self.gathers() {
            return self.sync_to(newest);
        }
        Gathered::all().for_each(|it| self.publish(it));
        self.sync_to(self.end())
    }
}
