//! A client: a session that parks, its transaction in the model, and what it does next.

use std::ops::Bound;
use std::sync::Arc;

use concurve_records::{
    Engine, FileDefinition, FileHandle, Key, SegmentKind, Session, Status, TransactionKind, Waiting,
};

use super::truth::{Changes, Name, Truth, Version};

pub const FILES: [&str; 4] = ["a", "b", "c", "d"];
/// Numbers of records in a file.
pub const NUMBERS: u32 = 400;
const KEY_BYTES: u16 = 200;
const RECORD_BYTES: u16 = 260;

/// A long unique key, so that trees have several levels, and a short one with duplicates.
pub fn definition() -> FileDefinition {
    FileDefinition {
        record_bytes: RECORD_BYTES,
        keys: vec![
            Key::unique(0, KEY_BYTES, SegmentKind::Bytes),
            Key::unique(KEY_BYTES, 4, SegmentKind::Unsigned).with_duplicates(),
        ],
    }
}

pub fn key(number: u32) -> Vec<u8> {
    let mut key = vec![b'k'; usize::from(KEY_BYTES)];
    key[190..].copy_from_slice(format!("{number:010}").as_bytes());
    key
}

/// The record of a number in a version: all of its bytes follow from both.
pub fn record(number: u32, version: Version) -> Vec<u8> {
    let mut record = key(number);
    record.extend((version % 16).to_le_bytes());
    record.extend(version.to_le_bytes());
    record.resize(usize::from(RECORD_BYTES), version as u8);
    record
}

/// The number and the version of a record.
///
/// # Errors
/// If it is not as it was written.
pub fn read_record(bytes: &[u8]) -> Result<(u32, Version), String> {
    let text = bytes
        .get(190..200)
        .and_then(|it| std::str::from_utf8(it).ok());
    let number = text.and_then(|it| it.parse().ok());
    let version = bytes.get(204..208).and_then(|it| it.try_into().ok());
    match (number, version.map(u32::from_le_bytes)) {
        (Some(number), Some(version)) if record(number, version) == bytes => Ok((number, version)),
        _ => Err(format!("a record is garbled: {}", bytes.escape_ascii())),
    }
}

#[derive(Debug, Clone, Copy)]
pub enum Operation {
    Begin(TransactionKind),
    End,
    Abort,
    Insert(&'static str, u32, Version),
    Update(&'static str, u32, Version),
    Delete(&'static str, u32),
    Read(&'static str, u32),
    /// The next record from a number on, in one of both directions.
    Next(&'static str, u32, bool),
    Create(&'static str),
    Drop(&'static str),
}

/// An operation that waits for a lock, or its first part is done.
#[derive(Debug, Clone, Copy)]
pub struct Doing {
    pub operation: Operation,
    /// The record that is to be changed is found and locked.
    pub is_found: bool,
}

impl Doing {
    pub fn new(operation: Operation) -> Self {
        Self {
            operation,
            is_found: false,
        }
    }
}

pub struct Client {
    pub session: Session,
    handles: [Option<FileHandle>; FILES.len()],
    /// What the transaction has changed; `None` without one.
    pub transaction: Option<Changes>,
    pub doing: Option<Doing>,
    /// The commit that is not confirmed yet.
    pub unconfirmed: Option<usize>,
}

impl Client {
    pub fn new(engine: &Engine) -> Self {
        let mut session = engine.session();
        session.set_waiting(Waiting::Parks(Arc::new(|| ())));
        Self {
            session,
            handles: [None; FILES.len()],
            transaction: None,
            doing: None,
            unconfirmed: None,
        }
    }

    pub fn handle(&mut self, file: &str) -> Result<FileHandle, Status> {
        let at = FILES
            .iter()
            .position(|it| *it == file)
            .expect("one of the names");
        match self.handles[at] {
            Some(handle) if !self.session.is_dropped(handle) => Ok(handle),
            _ => {
                let handle = self.session.open(file)?;
                self.handles[at] = Some(handle);
                Ok(handle)
            }
        }
    }

    /// What the client must see of a record.
    pub fn sees(&self, truth: &Truth, name: Name) -> Option<Version> {
        let own = self.transaction.as_ref().and_then(|it| it.get(&name));
        own.copied()
            .unwrap_or_else(|| truth.now.get(&name).copied())
    }

    /// The next record that the client must see from a number on, or from it back.
    pub fn sees_next(&self, truth: &Truth, from: Name, backwards: bool) -> Option<(u32, Version)> {
        let range = match backwards {
            false => (Bound::Included(from), Bound::Excluded((from.0 + 1, 0))),
            true => (Bound::Included((from.0, 0)), Bound::Included(from)),
        };
        let none = Changes::new();
        let own = self.transaction.as_ref().unwrap_or(&none);
        let of_others = truth.now.range(range).filter(|it| !own.contains_key(it.0));
        let mut of_others = of_others.map(|(name, version)| (name.1, *version));
        let of_own = own.range(range);
        let mut of_own = of_own.filter_map(|(name, version)| Some((name.1, (*version)?)));
        match backwards {
            false => [of_others.next(), of_own.next()]
                .into_iter()
                .flatten()
                .min(),
            true => {
                let last = [of_others.next_back(), of_own.next_back()];
                last.into_iter().flatten().max()
            }
        }
    }
}
