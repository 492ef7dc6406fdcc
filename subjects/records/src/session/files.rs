//! What a session does with files as a whole.

use crate::definition::FileDefinition;
use crate::error::Fault;
use crate::file::RecordFile;
use crate::locks::{Asked, FILE_PARTS, LockName, Mode};
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
        self.own.files.push(OpenFile { file, current });
        Ok(FileHandle(self.own.files.len() - 1))
    }

    /// Whether the file was given up since it was opened.
    pub fn is_gone(&self, file: FileHandle) -> bool {
        self.own.file(file).is_ok_and(|it| it.file.is_gone())
    }

    /// The names of all files.
    pub fn files(&self) -> Vec<String> {
        self.shared.names()
    }

    /// Operation 14: makes a file.
    ///
    /// # Errors
    /// If there is one of this name, or the definition cannot be kept.
    pub fn create_file(&self, name: &str, definition: &FileDefinition) -> Result<(), Fault> {
        if let Err(status) = self.shared.check() {
            return Err(Fault::Stopped(
                self.shared.why_failed().unwrap_or_default(),
                status,
            ));
        }
        self.shared.create_file(name, definition)
    }

    /// Gives up a file with all that is in it, at once and for good.
    ///
    /// # Errors
    /// [`Status::FileInUse`] if a transaction uses it, [`Status::TransactionActive`] in one.
    pub fn drop_file(&mut self, name: &str) -> Result<(), Status> {
        let opened = self.open(name)?;
        let (mut active, own) = self.active_and_own();
        if active.in_transaction() {
            return Err(Status::TransactionActive);
        }
        active.release_kept(own, opened, |_| true);
        active.give_up(&own.files[opened.0].file)
    }

    /// Operation 15: what the file is, and how much is in it.
    pub fn stat(&self, file: FileHandle) -> Result<[(&'static str, u64); 4], Status> {
        let mut records = 0;
        self.each_record(file, |_| {
            records += 1;
            Ok::<(), Status>(())
        })?;
        let file = &self.own.file(file)?.file;
        Ok([
            ("record_bytes", u64::from(file.definition.record_bytes)),
            ("keys", file.definition.keys.len() as u64),
            ("pages", u64::from(file.room.pages())),
            ("records", records),
        ])
    }

    /// Looks at all records of a file as they are on its pages: without locks, so those of open
    /// transactions too.
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
        let (file, mut first) = (&self.own.file(file)?.file, Ok(()));
        let looked = each_record(&self.shared.store, file, |record| {
            if first.is_ok() {
                first = look(record);
            }
        });
        looked.map_err(|fault| self.shared.fail(fault))?;
        first
    }

    /// Has a checkpoint made at once, by the thread that makes them.
    pub fn ask_for_checkpoint(&self) -> Result<(), Status> {
        self.shared.check()?;
        self.shared.checkpoints.ask();
        Ok(())
    }
}

impl Active<'_> {
    fn give_up(&mut self, file: &RecordFile) -> Result<(), Status> {
        let parts = (0..FILE_PARTS).map(|part| LockName::file(file.id, part));
        let (owner, locks) = (self.place.number, &self.shared.locks);
        let ask = |name: &LockName| locks.ask(owner, *name, Mode::Exclusive) != Asked::Busy;
        let taken: Vec<LockName> = parts.take_while(ask).collect();
        let done = match taken.len() as u64 {
            FILE_PARTS if file.is_gone() => Err(Status::FileNotFound),
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
