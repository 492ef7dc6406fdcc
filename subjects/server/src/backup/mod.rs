//! The backup file: the update parts of locks that shall outlive the server.
//!
//! An append-only file of records, each with its length and checksum. A record says how often a
//! lock is held from then on, 0 for no longer, so that reading it again changes nothing. A record
//! is on file before its request is answered, and so are all that were made before it. The file is
//! read at the start, appended to, and rewritten when most of it is past.

mod error;
mod live;
mod pair;
pub mod record;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::Flock;

pub use error::BackupError;
pub use live::Loaded;

use error::failed;
use live::Live;
use pair::{exchange, open_locked, other_path, sync_folder_of};
use record::{HEADER, Record, encode};

/// Rewritten once it is larger than this and four times what is still held.
const COMPACT_BYTES_MIN: u64 = 1 << 20;
const COMPACT_RATIO: u64 = 4;

/// What an answered request with backup survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The end of the server process, by SIGKILL too: the record was given to the kernel
    Process,
    /// The loss of power: the record was forced to the disk
    Power,
}

/// A backup file that is open for appending.
#[derive(Debug)]
pub struct Backup {
    path: PathBuf,
    /// The file, and the one that it is rewritten into: they change their names then. Both are open
    /// before engines are forked, because what one of them opens the others do not have.
    files: [Flock<File>; 2],
    /// Which of them has the name now.
    current: usize,
    /// The file system cannot exchange names.
    grows: bool,
    durability: Durability,
    /// Records that are not on file yet.
    pending: Vec<u8>,
    /// Bytes on file.
    length: u64,
    live: Live,
    /// A write has failed; nothing may be promised any more.
    failed: bool,
    pub compactions: u64,
}

impl Backup {
    /// Opens or creates the file, and reads what is held.
    ///
    /// A torn end (a record that was being written when the server or the machine stopped) is cut
    /// off: its request was never answered. Damage with whole records after it is refused.
    pub fn open(path: &Path, durability: Durability) -> Result<(Self, Loaded), BackupError> {
        let when = |action| move |source| failed(path, action, source);
        let mut file = open_locked(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(when("read it"))?;
        let (live, good, loaded) = Live::read(&bytes, path)?;
        file.set_len(good).map_err(when("cut its torn end off"))?;
        file.seek(SeekFrom::End(0)).map_err(when("seek in it"))?;
        let mut backup = Self {
            path: path.to_owned(),
            files: [file, open_locked(&other_path(path))?],
            current: 0,
            grows: false,
            durability,
            pending: Vec::new(),
            length: good,
            live,
            failed: false,
            compactions: 0,
        };
        if good == 0 {
            backup.pending.extend_from_slice(HEADER);
            backup.commit()?;
            sync_folder_of(path)?;
        }
        Ok((backup, loaded))
    }

    /// Everything held.
    pub fn held(&self) -> impl Iterator<Item = Record<'_>> {
        self.live.records()
    }

    /// Notes how often a lock is held from now on; on file after [`Backup::commit`].
    pub fn note(&mut self, record: &Record) {
        encode(record, &mut self.pending);
        self.live.note(record);
    }

    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Puts all that was noted on file, as durably as asked for.
    pub fn commit(&mut self) -> Result<(), BackupError> {
        if self.failed {
            let source = io::Error::other("an earlier write failed");
            return Err(failed(&self.path, "append to it", source));
        }
        if self.pending.is_empty() {
            return Ok(());
        }
        let result = self.append();
        self.failed = result.is_err();
        result?;
        let is_large =
            self.length > COMPACT_BYTES_MIN && self.length > COMPACT_RATIO * self.live.bytes();
        if is_large && !self.grows {
            self.compact()?;
        }
        Ok(())
    }

    fn append(&mut self) -> Result<(), BackupError> {
        let (path, file) = (&self.path, &mut self.files[self.current]);
        file.write_all(&self.pending)
            .map_err(|source| failed(path, "append to it", source))?;
        self.length += self.pending.len() as u64;
        self.pending.clear();
        if self.durability == Durability::Power {
            file.sync_data()
                .map_err(|source| failed(path, "force it to the disk", source))?;
        }
        Ok(())
    }

    /// Writes what is held to another file that takes this one's name at once.
    pub fn compact(&mut self) -> Result<(), BackupError> {
        let path = other_path(&self.path);
        let when = |action| {
            let path = path.clone();
            move |source| failed(&path, action, source)
        };
        let mut bytes = HEADER.to_vec();
        for record in self.held() {
            encode(&record, &mut bytes);
        }
        let file = &mut self.files[1 - self.current];
        file.set_len(0).map_err(when("empty it"))?;
        file.rewind().map_err(when("seek in it"))?;
        file.write_all(&bytes).map_err(when("write it"))?;
        file.sync_all().map_err(when("force it to the disk"))?;
        match exchange(&path, &self.path) {
            Ok(()) => {}
            Err(Errno::EINVAL | Errno::ENOSYS) => {
                let shown = self.path.display();
                eprintln!(
                    "concurve-server: the backup file {shown} will grow: its file system cannot \
                     exchange the names of two files, so it is not rewritten"
                );
                self.grows = true;
                return Ok(());
            }
            Err(error) => return Err(when("put it in place")(error.into())),
        }
        self.current = 1 - self.current;
        self.length = bytes.len() as u64;
        self.compactions += 1;
        sync_folder_of(&self.path)
    }

    /// Takes away what was only there to be written to; a file that is left does no harm.
    pub fn end(self) {
        let _ = std::fs::remove_file(other_path(&self.path));
    }
}
