//! The locks that are held according to the records of a backup file.

use std::path::Path;

use hashbrown::HashMap;

use super::error::BackupError;
use super::record::{HEADER, HEADER_OF_FORMAT_1, Mark, Record, decode, encode};
use crate::lock_table::mode::Mode;

#[cfg(test)]
mod tests;

/// What the server found in the file at its start.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct LoadedBackup {
    pub records: u64,
    pub locks: u64,
    /// Bytes of a torn record at the end, which was truncated.
    pub torn_bytes: u64,
}

/// How often each lock is held.
#[derive(Debug, Default)]
pub struct HeldLocks {
    /// For each record body without its count: the count.
    counts: HashMap<Box<[u8]>, u32>,
    bytes: u64,
}

/// What was read from a file.
#[derive(Debug)]
pub struct Read {
    pub held: HeldLocks,
    /// Length of the header and the whole records; 0: the file is new.
    pub length: u64,
    pub loaded: LoadedBackup,
    pub is_of_format_1: bool,
}

impl HeldLocks {
    /// Reads the bytes of a file: the locks, and the length of the whole records. `boot` is the present
    /// start of the machine.
    pub fn read(bytes: &[u8], path: &Path, boot: u64) -> Result<Read, BackupError> {
        let (mut held, mut loaded) = (Self::default(), LoadedBackup::default());
        let is_of_format_1 = bytes.starts_with(HEADER_OF_FORMAT_1);
        let begin = match is_of_format_1 {
            true => HEADER_OF_FORMAT_1.len(),
            false => HEADER.len() + Mark::BYTES,
        };
        if bytes.len() < begin || !(is_of_format_1 || bytes.starts_with(HEADER)) {
            // The server or the machine may have stopped while the header was written.
            if !HEADER.starts_with(&bytes[..bytes.len().min(HEADER.len())]) {
                let path = path.to_owned();
                return Err(BackupError::Foreign { path });
            }
            loaded.torn_bytes = bytes.len() as u64;
            return Ok(Read {
                held,
                length: 0,
                loaded,
                is_of_format_1,
            });
        }
        let mut at = begin;
        while let Some((record, length)) = decode(&bytes[at..]) {
            held.note(&record);
            loaded.records += 1;
            at += length;
        }
        let path = || path.to_owned();
        let after = (at + 1..bytes.len()).filter(|from| decode(&bytes[*from..]).is_some());
        let (after, at) = (after.count() as u64, at as u64);
        if after > 0 {
            let path = path();
            return Err(BackupError::Damaged { path, at, after });
        }
        let mark = Mark::decode(&bytes[HEADER.len()..]);
        if mark.is_none() && !is_of_format_1 {
            // It is on one sector, so it cannot be torn.
            let (path, at, after) = (path(), HEADER.len() as u64, loaded.records);
            return Err(BackupError::Damaged { path, at, after });
        }
        let mark = mark.filter(|_| !is_of_format_1);
        let is_valid = |it: &Mark| it.boot == 0 || it.boot == boot;
        if let Some(Mark { end: length, .. }) = mark.filter(is_valid)
            && length > at
        {
            let path = path();
            return Err(BackupError::Cut { path, at, length });
        }
        loaded.torn_bytes = bytes.len() as u64 - at;
        loaded.locks = held.counts.len() as u64;
        Ok(Read {
            held,
            length: at,
            loaded,
            is_of_format_1,
        })
    }

    /// Sets how often a lock is held from now on.
    pub fn note(&mut self, record: &Record) {
        let key = key(record);
        let bytes = entry_bytes(&key);
        if record.count == 0 {
            if self.counts.remove(&key).is_some() {
                self.bytes -= bytes;
            }
        } else if self.counts.insert(key, record.count).is_none() {
            self.bytes += bytes;
        }
    }

    /// A record for each lock.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        let records = self.counts.iter();
        records.filter_map(|(key, count)| from_key(key, *count))
    }

    /// Length of these records in the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
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
    let mode = Mode::from_letter(key.get(4..5)?)?;
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
