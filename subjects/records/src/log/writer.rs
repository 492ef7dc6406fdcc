//! Writing the buffer to the disk: one thread writes and forces for all that wait.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use concurve_latch::MutexGuard;

use crate::error::{Failure, Fault};
use crate::log::buffer::Target;
use crate::log::files::name_durably;
use crate::log::forced::Forced;
use crate::log::{Durability, Log};
use crate::storage::Disk;

/// How often a thread checks whether another one has written its records, before it sleeps.
const SPINS: usize = 300;

/// The right to write the log.
pub(super) struct Writer {
    pub file: Arc<dyn Disk>,
    /// LSN of its first byte.
    pub file_start: u64,
    /// Its name and its length may not be on the disk, and the file `forced` does not tell of it.
    pub is_unnamed: bool,
    /// Files before that one that were not forced to the disk.
    pub unsynced: Vec<Arc<dyn Disk>>,
    /// The file, if records are to be put into it as soon as nothing else is to be written.
    pub target: Option<Target>,
    /// Says up to where the log was forced to the disk.
    pub forced: Forced,
    /// The buffer that is not in use.
    pub spare: Vec<u8>,
    pub failure: Failure,
}

/// A thread forces the log, also for others: they go on when it has ended, be it by a panic.
struct Forcing<'a>(&'a Log);

impl Drop for Forcing<'_> {
    fn drop(&mut self) {
        *self.0.is_forcing.lock() = false;
        self.0.forced.notify_all();
    }
}

impl Log {
    /// Makes all before `lsn` durable.
    pub fn make_durable(&self, lsn: u64, durability: Durability) -> Result<(), Fault> {
        match durability {
            Durability::None => self.write_to(lsn),
            Durability::Group => self.sync_to(lsn),
            Durability::Each => self.sync(self.writer()),
        }
    }

    /// Writes all before `lsn` to the kernel.
    pub fn write_to(&self, lsn: u64) -> Result<(), Fault> {
        let Some(mut writer) = self.writer_unless(|| self.written() >= lsn) else {
            return Ok(());
        };
        self.write(&mut writer)
    }

    /// The writer, or `None` as soon as `is_done`.
    ///
    /// A write takes a few microseconds. A thread that slept in the meantime would cost the writer
    /// a system call to wake it, only to find its records written. So it spins for a while.
    fn writer_unless(&self, is_done: impl Fn() -> bool) -> Option<MutexGuard<'_, Writer>> {
        for _ in 0..SPINS {
            if is_done() {
                return None;
            }
            // To try to take it would take its line from the thread that writes.
            if !self.writer.is_locked()
                && let Some(writer) = self.writer.try_lock()
            {
                return (!is_done()).then_some(writer);
            }
            std::hint::spin_loop();
        }
        let writer = self.writer();
        (!is_done()).then_some(writer)
    }

    /// Forces all before `lsn` to the disk: one thread does it for all that wait.
    pub fn sync_to(&self, lsn: u64) -> Result<(), Fault> {
        if self.synced() >= lsn {
            return Ok(());
        }
        let mut is_forcing = self.is_forcing.lock();
        while *is_forcing {
            // They do not queue for the writer: all whose records are forced continue at once.
            self.forced.wait(&mut is_forcing);
            if self.synced() >= lsn {
                return Ok(());
            }
        }
        *is_forcing = true;
        drop(is_forcing);
        let _forcing = Forcing(self);
        self.sync(self.writer())
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock()
    }

    fn write(&self, writer: &mut Writer) -> Result<(), Fault> {
        writer.failure.check()?;
        let written = self.write_buffer(writer);
        self.remember_failure(writer, written)
    }

    fn write_buffer(&self, writer: &mut Writer) -> Result<(), Fault> {
        let start = {
            let mut buffer = self.head.buffer.lock();
            if buffer.len() == 0 {
                return Ok(());
            }
            buffer.take(self.synced(), &mut writer.spare)
        };
        let end = start + writer.spare.len() as u64;
        if start - writer.file_start >= self.options.file_bytes {
            let file = self.spares.start_file(self.storage.as_ref(), start)?;
            writer
                .unsynced
                .push(std::mem::replace(&mut writer.file, file));
            writer.file_start = start;
            writer.is_unnamed = true;
            self.is_unnamed.store(true, Ordering::Release);
            if !self.options.is_in_memory {
                self.name(writer)?;
            }
            writer.target = self.options.target(&writer.file, start);
        }
        writer
            .file
            .write_at(&writer.spare, start - writer.file_start)
            .map_err(Fault::io(|| "append to the log".to_owned()))?;
        writer.spare.clear();
        self.head.written.store(end, Ordering::Release);
        if let Some(target) = writer.target.take() {
            writer.target = self.head.buffer.lock().set_target(target);
        }
        Ok(())
    }

    /// Whether the newest file of the log is not named on the disk: where transactions need not survive a
    /// loss of power, none waits for that.
    pub(super) fn wants_name(&self) -> bool {
        self.is_unnamed.load(Ordering::Acquire)
    }

    /// Names the newest file of the log durably, if it is not. Sessions append meanwhile.
    pub(super) fn name_newest(&self) -> Result<(), Fault> {
        let (file, start) = {
            let writer = self.writer();
            if !writer.is_unnamed {
                return Ok(());
            }
            writer.failure.check()?;
            (Arc::clone(&writer.file), writer.file_start)
        };
        let named = name_durably(self.storage.as_ref(), file.as_ref(), start);
        let mut writer = self.writer();
        let noted = match named {
            // Another file has begun: that one is to be named.
            Ok(_) if writer.file_start != start => Ok(()),
            Ok(length) => self.note_name(&mut writer, length),
            Err(fault) => {
                writer.forced.doubt();
                Err(fault)
            }
        };
        self.remember_failure(&mut writer, noted)
    }

    /// Names the file of the writer durably, if it is not.
    fn name(&self, writer: &mut Writer) -> Result<(), Fault> {
        if !writer.is_unnamed {
            return Ok(());
        }
        let (storage, file) = (self.storage.as_ref(), writer.file.as_ref());
        let length = name_durably(storage, file, writer.file_start)?;
        self.note_name(writer, length)
    }

    fn note_name(&self, writer: &mut Writer, length: u64) -> Result<(), Fault> {
        writer.forced.note_file(writer.file_start, length)?;
        writer.is_unnamed = false;
        self.is_unnamed.store(false, Ordering::Release);
        Ok(())
    }

    fn sync(&self, mut writer: MutexGuard<'_, Writer>) -> Result<(), Fault> {
        self.write(&mut writer)?;
        let end = self.written();
        let forced = sync_files(&writer).and_then(|()| self.name(&mut writer));
        if forced.is_err() {
            writer.forced.doubt();
        }
        let synced = forced.and_then(|()| writer.forced.note(end));
        self.remember_failure(&mut writer, synced)?;
        writer.unsynced.clear();
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.synced.store(end, Ordering::Release);
        Ok(())
    }

    /// Remembers a failure: the state of the disk is not known then, and no later commit may succeed.
    fn remember_failure(
        &self,
        writer: &mut Writer,
        result: Result<(), Fault>,
    ) -> Result<(), Fault> {
        let result = writer.failure.remember(result);
        if result.is_err() {
            writer.target = None;
            self.head.buffer.lock().remove_target();
        }
        result
    }
}

fn sync_files(writer: &Writer) -> Result<(), Fault> {
    for file in writer.unsynced.iter().chain([&writer.file]) {
        file.sync()
            .map_err(Fault::io(|| "force the log to the disk".to_owned()))?;
    }
    Ok(())
}
