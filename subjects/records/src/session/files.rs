//! Operations on files as a whole.

use crate::definition::FileDefinition;
use crate::error::Fault;
use crate::file::RecordFile;
use crate::locks::{FILE_PARTS, LockName, LockOutcome, Mode};
use crate::session::active::Active;
use crate::session::{FileHandle, OpenFile, Session};
use crate::status::Status;
use crate::verify::each_record;

impl Session {
    /// Opens a file; each opening has a position of its own.
    pub fn open(&mut self, name: &str) -> Result<FileHandle, Status> {
        self.shared.check()?;
        let file = self.shared.file_named(name).ok_or(Status::FileNotFound)?;
        let current = None;
        self.local.files.push(OpenFile { file, current });
        Ok(FileHandle(self.local.files.len() - 1))
    }

    /// Whether the file was dropped since it was opened.
    pub fn is_dropped(&self, file: FileHandle) -> bool {
        self.local.file(file).is_ok_and(|it| it.file.is_dropped())
    }

    /// The names of all files.
    pub fn files(&self) -> Vec<String> {
        self.shared.names()
    }

    /// Operation 14: creates a file.
    ///
    /// # Errors
    /// As [`Engine::create_file`](crate::Engine::create_file).
    pub fn create_file(&self, name: &str, definition: &FileDefinition) -> Result<(), Fault> {
        self.shared.create_file(name, definition)
    }

    /// Drops a file with all its records. Cannot be undone.
    ///
    /// # Errors
    /// [`Status::FileInUse`] if a transaction uses it, [`Status::TransactionActive`] in one.
    pub fn drop_file(&mut self, name: &str) -> Result<(), Status> {
        let opened = self.open(name)?;
        let (mut active, local) = self.active_and_local();
        if active.in_transaction() {
            return Err(Status::TransactionActive);
        }
        active.release_kept(local, opened, |_| true);
        active.drop_file(&local.files[opened.0].file)
    }

    /// Operation 15: the definition of the file in numbers, its pages and records.
    pub fn stat(&self, file: FileHandle) -> Result<[(&'static str, u64); 4], Status> {
        let mut records = 0;
        self.each_record(file, |_| {
            records += 1;
            Ok::<(), Status>(())
        })?;
        let file = &self.local.file(file)?.file;
        Ok([
            ("record_bytes", u64::from(file.definition.record_bytes)),
            ("keys", file.definition.keys.len() as u64),
            ("pages", u64::from(file.free_space.pages())),
            ("records", records),
        ])
    }

    /// Calls `look` for all records on the pages of a file: without locks, so also for those of
    /// open transactions.
    ///
    /// # Errors
    /// The status if they cannot be read, or the first error of `look`.
    pub fn each_record<E: From<Status>>(
        &self,
        file: FileHandle,
        mut look: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.shared.check()?;
        let _active = self.active();
        let (file, mut first) = (&self.local.file(file)?.file, Ok(()));
        let looked = each_record(&self.shared.store, file, |record| {
            if first.is_ok() {
                first = look(record);
            }
        });
        looked.map_err(|fault| self.shared.fail(fault))?;
        first
    }

    /// Requests a checkpoint from the checkpointer, and does not wait for it.
    pub fn request_checkpoint(&self) -> Result<(), Status> {
        self.shared.check()?;
        self.shared.checkpoints.request();
        Ok(())
    }
}

impl Active<'_> {
    fn drop_file(&mut self, file: &RecordFile) -> Result<(), Status> {
        let parts = (0..FILE_PARTS).map(|part| LockName::file(file.id, part));
        let (owner, locks) = (self.registration.number, &self.shared.locks);
        let take =
            |name: &LockName| locks.try_lock(owner, *name, Mode::Exclusive) != LockOutcome::Busy;
        let taken: Vec<LockName> = parts.take_while(take).collect();
        let done = match taken.len() as u64 {
            FILE_PARTS if file.is_dropped() => Err(Status::FileNotFound),
            FILE_PARTS => {
                let dropped = self.shared.drop_file(file);
                dropped.map_err(|fault| self.shared.fail(fault))
            }
            _ => Err(Status::FileInUse),
        };
        for name in taken {
            locks.release(owner, name);
        }
        done
    }
}
