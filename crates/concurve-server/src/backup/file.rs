//! The backup file on disk: read at the start, appended to, rewritten when most of it is past.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use hashbrown::HashMap;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, Flock, FlockArg, RenameFlags, renameat2};
use thiserror::Error;

use crate::backup::record::{HEADER, Record, decode, encode};

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

#[derive(Debug, Error)]
pub enum BackupError {
    #[error("backup file {path}: cannot {action}: {source}")]
    Io {
        path: PathBuf,
        action: &'static str,
        source: io::Error,
    },
    #[error(
        "backup file {path} is not one of ours: it does not begin with {:?}; name another file",
        String::from_utf8_lossy(HEADER)
    )]
    Foreign { path: PathBuf },
    #[error(
        "backup file {path} is damaged at byte {at}, and {after} whole records follow, so this is \
         no torn end: restore it from a copy, or move it away and start without its locks"
    )]
    Damaged { path: PathBuf, at: u64, after: u64 },
    #[error("backup file {path} is in use by another server; name another file, or stop that one")]
    InUse { path: PathBuf },
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
    /// What is held: the body of a record without its count, and the count.
    live: HashMap<Box<[u8]>, u32>,
    live_bytes: u64,
    /// A write has failed; nothing may be promised any more.
    failed: bool,
    pub compactions: u64,
}

/// What a start found.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Loaded {
    pub records: u64,
    pub locks: u64,
    /// Bytes of a torn record at the end, cut off.
    pub torn_bytes: u64,
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
        let (live, good, loaded) = read(&bytes, path)?;
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
            live_bytes: live.keys().map(|key| entry_bytes(key)).sum(),
            live,
            failed: false,
            compactions: 0,
        };
        if good == 0 {
            backup.pending.extend_from_slice(HEADER);
            backup.commit()?;
            backup.sync_folder()?;
        }
        Ok((backup, loaded))
    }

    /// Everything held.
    pub fn held(&self) -> impl Iterator<Item = Record<'_>> {
        let records = self.live.iter();
        records.filter_map(|(key, count)| from_key(key, *count))
    }

    /// Notes how often a lock is held from now on; on file after [`Backup::commit`].
    pub fn note(&mut self, record: &Record) {
        encode(record, &mut self.pending);
        let key = key(record);
        let bytes = entry_bytes(&key);
        if record.count == 0 {
            if self.live.remove(&key).is_some() {
                self.live_bytes -= bytes;
            }
        } else if self.live.insert(key, record.count).is_none() {
            self.live_bytes += bytes;
        }
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
            self.length > COMPACT_BYTES_MIN && self.length > COMPACT_RATIO * self.live_bytes;
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
        self.sync_folder()
    }

    /// Takes away what was only there to be written to; a file that is left does no harm.
    pub fn end(self) {
        let _ = std::fs::remove_file(other_path(&self.path));
    }

    /// Makes the name of the file durable.
    fn sync_folder(&self) -> Result<(), BackupError> {
        let folder = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|source| failed(&self.path, "force its folder to the disk", source))
    }
}

fn failed(path: &Path, action: &'static str, source: io::Error) -> BackupError {
    let path = path.to_owned();
    BackupError::Io {
        path,
        action,
        source,
    }
}

/// What a backup file is rewritten into.
fn other_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

fn exchange(one: &Path, other: &Path) -> Result<(), Errno> {
    renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE)
}

fn open_locked(path: &Path) -> Result<Flock<File>, BackupError> {
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path);
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

type Live = HashMap<Box<[u8]>, u32>;

/// What the bytes of a file say is held, and how many of them are good.
fn read(bytes: &[u8], path: &Path) -> Result<(Live, u64, Loaded), BackupError> {
    let (mut live, mut loaded) = (Live::new(), Loaded::default());
    if !bytes.starts_with(HEADER) {
        // The end may have come while the header was written.
        if !HEADER.starts_with(bytes) {
            let path = path.to_owned();
            return Err(BackupError::Foreign { path });
        }
        loaded.torn_bytes = bytes.len() as u64;
        return Ok((live, 0, loaded));
    }
    let mut at = HEADER.len();
    while let Some((record, length)) = decode(&bytes[at..]) {
        match record.count {
            0 => live.remove(&key(&record)),
            count => live.insert(key(&record), count),
        };
        loaded.records += 1;
        at += length;
    }
    let after = (at + 1..bytes.len()).filter(|from| decode(&bytes[*from..]).is_some());
    let after = after.count() as u64;
    if after > 0 {
        let (path, at) = (path.to_owned(), at as u64);
        return Err(BackupError::Damaged { path, at, after });
    }
    loaded.torn_bytes = (bytes.len() - at) as u64;
    loaded.locks = live.len() as u64;
    Ok((live, at as u64, loaded))
}

fn key(record: &Record) -> Box<[u8]> {
    let mut whole = Vec::with_capacity(800);
    encode(
        &Record {
            count: 0,
            ..*record
        },
        &mut whole,
    );
    whole[8..].into()
}

fn from_key(key: &[u8], count: u32) -> Option<Record<'_>> {
    let mode = crate::locks::mode::Mode::from_letter(key.get(4..5)?)?;
    let mut rest = &key[5..];
    let mut text = || {
        let (length, after) = rest.split_first()?;
        let (text, after) = after.split_at_checked(usize::from(*length))?;
        rest = after;
        Some(text)
    };
    Some(Record {
        count,
        mode,
        table: text()?,
        argument: text()?,
        owner: text()?,
    })
}

fn entry_bytes(key: &[u8]) -> u64 {
    key.len() as u64 + 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::mode::Mode;

    fn record(argument: &str, count: u32) -> Record<'_> {
        Record {
            count,
            mode: Mode::Exclusive,
            table: b"T",
            argument: argument.as_bytes(),
            owner: b"o",
        }
    }

    fn held(backup: &Backup) -> Vec<(String, u32)> {
        let text = |it: Record| (String::from_utf8_lossy(it.argument).into_owned(), it.count);
        let mut held: Vec<_> = backup.held().map(text).collect();
        held.sort();
        held
    }

    fn open(path: &Path) -> (Backup, Loaded) {
        Backup::open(path, Durability::Process).unwrap()
    }

    #[test]
    fn what_was_committed_is_held_again_wherever_the_file_is_torn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("locks");
        let steps = [("a", 1), ("b", 1), ("a", 2), ("b", 0), ("c", 1)];
        // After each step: the length of the file, and what is held.
        let mut whole = Vec::new();
        {
            let (mut backup, _) = open(&path);
            whole.push((backup.length, held(&backup)));
            for (argument, count) in steps {
                backup.note(&record(argument, count));
                backup.commit().unwrap();
                whole.push((backup.length, held(&backup)));
            }
        }
        let bytes = std::fs::read(&path).unwrap();
        for length in 0..=bytes.len() {
            std::fs::write(&path, &bytes[..length]).unwrap();
            let (backup, loaded) = open(&path);
            let good = whole.iter().rev().find(|it| it.0 <= length as u64);
            let good = good.map_or((0, vec![]), Clone::clone);
            assert_eq!(held(&backup), good.1, "of {length} bytes");
            assert_eq!(loaded.torn_bytes, length as u64 - good.0);
        }
    }

    #[test]
    fn damage_with_records_after_it_is_refused_by_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("locks");
        {
            let (mut backup, _) = open(&path);
            backup.note(&record("a", 1));
            backup.note(&record("b", 1));
            backup.commit().unwrap();
        }
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[HEADER.len() + 9] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let error = Backup::open(&path, Durability::Process).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("damaged at byte 17, and 1 whole"),
            "{error}"
        );
        std::fs::write(&path, "something else").unwrap();
        let error = Backup::open(&path, Durability::Process).unwrap_err();
        assert!(matches!(error, BackupError::Foreign { .. }));
    }

    #[test]
    fn a_rewritten_file_holds_the_same_and_one_server_owns_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("locks");
        let (mut backup, _) = open(&path);
        for round in 0..120_000_u32 {
            backup.note(&record("x", round % 2));
            if round % 1000 == 0 {
                backup.commit().unwrap();
            }
        }
        backup.note(&record("kept", 3));
        backup.commit().unwrap();
        assert!(backup.compactions > 1 && backup.length < COMPACT_BYTES_MIN);
        let before = held(&backup);
        let error = Backup::open(&path, Durability::Process).unwrap_err();
        assert!(matches!(error, BackupError::InUse { .. }));
        drop(backup);
        let backup = open(&path).0;
        assert_eq!(held(&backup), before);
        backup.end();
        assert!(!other_path(&path).exists());
    }
}
