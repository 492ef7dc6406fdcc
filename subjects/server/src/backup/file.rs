//! The backup file, open for appending, and the second file, into which it is compacted.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, Flock, FlockArg, RenameFlags, renameat2};

use super::error::{BackupError, failed};
use super::held::{HeldLocks, LoadedBackup};
use super::record::{HEADER, Mark, Record, encode};
use crate::log;

#[cfg(test)]
mod tests;

/// The file is compacted once it is larger than this, and four times as large as its current
/// contents need.
const COMPACT_BYTES_MIN: u64 = 1 << 20;
const COMPACT_RATIO: u64 = 4;

/// What an acknowledged request with BACKUP survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The end of the server process, by SIGKILL too: the kernel has the record
    Process,
    /// The loss of power: the disk has the record
    Power,
}

/// A backup file that is open for appending.
#[derive(Debug)]
pub struct BackupFile {
    path: PathBuf,
    /// The file, and the one into which it is compacted; afterwards they exchange their names. Both
    /// are opened before engines are forked, because a descriptor that an engine opens is not valid
    /// in the others.
    files: [Flock<File>; 2],
    /// The index of the file that has the name of the backup file now.
    current: usize,
    /// The file system cannot exchange names, so the file is never compacted.
    grows: bool,
    /// Whether the file has a mark: one of format 1 that cannot be compacted has none.
    has_mark: bool,
    /// The start of the machine in which marks are valid; 0: in all.
    boot: u64,
    durability: Durability,
    /// Records that are not in the file yet.
    pending: Vec<u8>,
    /// Length of the file in bytes.
    length: u64,
    held: HeldLocks,
    /// The first write that failed, and why: no further request may be answered.
    broken: Option<(&'static str, String)>,
    pub compactions: u64,
}

impl BackupFile {
    /// Opens or creates the file, and reads the locks in it.
    ///
    /// A torn record at the end, which was being written when the server or the machine stopped, is
    /// truncated: its request was never answered. Damage before whole records is an error.
    pub fn open(path: &Path, durability: Durability) -> Result<(Self, LoadedBackup), BackupError> {
        let when = |action| move |source| failed(path, action, source);
        let other = other_path(path);
        let has_other = other.exists();
        let mut file = open_locked(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(when("read it"))?;
        let boot = concurve_records::storage::boot();
        let read = HeldLocks::read(&bytes, path, boot)?;
        concurve_files::keep_private(&file).map_err(when("set the permissions of it"))?;
        if read.length == 0 {
            // The other file is made after the header is written.
            if has_other {
                let path = path.to_owned();
                return Err(BackupError::Missing { path });
            }
            file.set_len(0).map_err(when("empty it"))?;
            file.rewind().map_err(when("seek in it"))?;
            file.write_all(&begin(0)).map_err(when("write to it"))?;
            file.sync_all().map_err(when("force it to the disk"))?;
            sync_folder_of(path)?;
        }
        let length = read.length.max(BEGIN_BYTES);
        file.set_len(length)
            .map_err(when("truncate its torn end"))?;
        file.seek(SeekFrom::End(0)).map_err(when("seek in it"))?;
        let other = open_locked(&other)?;
        concurve_files::keep_private(&other).map_err(when("set the permissions of it"))?;
        let mut backup = Self {
            path: path.to_owned(),
            files: [file, other],
            current: 0,
            grows: false,
            has_mark: !read.is_of_format_1,
            durability,
            boot: match durability {
                Durability::Process => boot,
                Durability::Power => 0,
            },
            pending: Vec::new(),
            length,
            held: read.held,
            broken: None,
            compactions: 0,
        };
        if read.is_of_format_1 {
            // Its records get a new file with a mark.
            backup.compact()?;
        } else {
            backup.note_end()?;
        }
        Ok((backup, read.loaded))
    }

    /// A record for each lock that is held.
    pub fn held(&self) -> impl Iterator<Item = Record<'_>> {
        self.held.records()
    }

    /// Records how often a lock is held from now on; [`BackupFile::commit`] writes that to the
    /// file.
    pub fn note(&mut self, record: &Record) {
        encode(record, &mut self.pending);
        self.held.note(record);
    }

    /// Writes all pending records to the file, with the chosen durability.
    pub fn commit(&mut self) -> Result<(), BackupError> {
        if let Some((action, reason)) = &self.broken {
            // Whoever comes second tells why, too: the server may end before the first does.
            let source = io::Error::other(reason.clone());
            return Err(failed(&self.path, action, source));
        }
        if self.pending.is_empty() {
            return Ok(());
        }
        let written = self.append().and_then(|()| self.compact_if_large());
        if let Err(BackupError::Io { action, source, .. }) = &written {
            self.broken = Some((action, source.to_string()));
        }
        written
    }

    fn compact_if_large(&mut self) -> Result<(), BackupError> {
        let is_large =
            self.length > COMPACT_BYTES_MIN && self.length > COMPACT_RATIO * self.held.bytes();
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
        self.note_end()
    }

    /// Notes up to where the file was written. Not forced to the disk: after a loss of power the mark may
    /// be an older one.
    fn note_end(&self) -> Result<(), BackupError> {
        if !self.has_mark {
            return Ok(());
        }
        let mark = Mark {
            end: self.length,
            boot: self.boot,
        };
        self.files[self.current]
            .write_all_at(&mark.encode(), HEADER.len() as u64)
            .map_err(|source| failed(&self.path, "note its end", source))
    }

    /// Writes a record for each lock that is held to the other file, which then gets the name.
    pub fn compact(&mut self) -> Result<(), BackupError> {
        let path = other_path(&self.path);
        let when = |action| {
            let path = path.clone();
            move |source| failed(&path, action, source)
        };
        let mut bytes = begin(self.boot);
        for record in self.held() {
            encode(&record, &mut bytes);
        }
        let mark = Mark {
            end: bytes.len() as u64,
            boot: self.boot,
        };
        bytes[HEADER.len()..BEGIN_BYTES as usize].copy_from_slice(&mark.encode());
        let file = &mut self.files[1 - self.current];
        file.set_len(0).map_err(when("empty it"))?;
        file.rewind().map_err(when("seek in it"))?;
        file.write_all(&bytes).map_err(when("write it"))?;
        file.sync_all().map_err(when("force it to the disk"))?;
        match exchange(&path, &self.path) {
            Ok(()) => {}
            Err(Errno::EINVAL | Errno::ENOSYS) => {
                let shown = self.path.display();
                log::tell(format_args!(
                    "the backup file {shown} will grow: its file system cannot exchange the names of \
                     two files, so it is never compacted"
                ));
                self.grows = true;
                return Ok(());
            }
            Err(error) => return Err(when("put it in place")(error.into())),
        }
        self.current = 1 - self.current;
        self.has_mark = true;
        self.length = bytes.len() as u64;
        self.compactions += 1;
        sync_folder_of(&self.path)
    }

    /// Removes the other file. An error is ignored, because the file would do no harm.
    pub fn end(self) {
        let _ = std::fs::remove_file(other_path(&self.path));
    }
}

/// The path of the file into which a backup file is compacted.
fn other_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

/// Exchanges the names of two files atomically.
fn exchange(one: &Path, other: &Path) -> Result<(), Errno> {
    renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE)
}

/// Length of what is before the records.
const BEGIN_BYTES: u64 = (HEADER.len() + Mark::BYTES) as u64;

/// What is before the records of a new file.
fn begin(boot: u64) -> Vec<u8> {
    let mark = Mark {
        end: BEGIN_BYTES,
        boot,
    };
    [HEADER, &mark.encode()].concat()
}

/// Refuses what is no regular file: a pipe or a device keeps nothing, or blocks.
fn check_kind(path: &Path) -> Result<(), BackupError> {
    let kind = match std::fs::metadata(path) {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(failed(path, "look at it", source)),
    };
    let what = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    let path = path.to_owned();
    Err(BackupError::NotAFile { path, what })
}

/// Opens or creates a file, and locks it against other servers.
fn open_locked(path: &Path) -> Result<Flock<File>, BackupError> {
    check_kind(path)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let opened = concurve_files::open_as_it_is(&options, path);
    lock(
        opened.map_err(|source| failed(path, "open it", source))?,
        path,
    )
}

fn lock(file: File, path: &Path) -> Result<Flock<File>, BackupError> {
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| match error {
        Errno::EWOULDBLOCK => BackupError::InUse {
            path: path.to_owned(),
        },
        error => failed(path, "lock it", error.into()),
    })
}

/// Makes the name of a file durable.
fn sync_folder_of(path: &Path) -> Result<(), BackupError> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|source| failed(path, "force its folder to the disk", source))
}
