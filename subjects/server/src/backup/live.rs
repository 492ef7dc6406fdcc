//! What a backup file says is held.

use std::path::Path;

use hashbrown::HashMap;

use crate::backup::error::BackupError;
use crate::backup::record::{HEADER, Record, decode, encode};
use crate::locks::mode::Mode;

/// What a start found.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Loaded {
    pub records: u64,
    pub locks: u64,
    /// Bytes of a torn record at the end, cut off.
    pub torn_bytes: u64,
}

/// The locks that are held.
#[derive(Debug, Default)]
pub struct Live {
    /// The body of a record without its count, and the count.
    counts: HashMap<Box<[u8]>, u32>,
    bytes: u64,
}

impl Live {
    /// What the bytes of a file say is held, and how many of them are good.
    pub fn read(bytes: &[u8], path: &Path) -> Result<(Self, u64, Loaded), BackupError> {
        let (mut live, mut loaded) = (Self::default(), Loaded::default());
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
            live.note(&record);
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
        loaded.locks = live.counts.len() as u64;
        Ok((live, at as u64, loaded))
    }

    /// Notes how often a lock is held from now on.
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

    /// Length of these records on file.
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
