//! The names of fields, as records of a file of their own.
//!
//! A record: name of the file, number of the field (highest byte first), its name.

use std::collections::BTreeMap;

use concurve_records::{FileDefinition, Get, Key, LockBias, Segment, SegmentKind, Session, Status};

/// Longest name of a file with its database, and of a field.
pub const NAME_BYTES: usize = 64;
const NUMBER_BYTES: usize = 2;
/// The name of that file; no other file can have it.
pub const OWN_FILE: &str = "catalogue--fields";

/// The definition of that file.
pub fn definition() -> FileDefinition {
    let part = |offset: usize, bytes: usize| Segment {
        offset: offset as u16,
        bytes: bytes as u16,
        kind: SegmentKind::Bytes,
    };
    FileDefinition {
        record_bytes: (2 * NAME_BYTES + NUMBER_BYTES) as u16,
        keys: vec![Key {
            segments: vec![part(0, NAME_BYTES), part(NAME_BYTES, NUMBER_BYTES)],
            duplicates: false,
        }],
    }
}

/// The key of a field.
fn key(file: &str, number: usize) -> Vec<u8> {
    let mut key = file.as_bytes().to_vec();
    key.resize(NAME_BYTES, 0);
    key.extend((number as u16).to_be_bytes());
    key
}

fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|it| *it == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// The fields of all files, in their order.
pub fn read_all(session: &mut Session) -> Result<BTreeMap<String, Vec<String>>, Status> {
    let own = session.open(OWN_FILE)?;
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut next = Get::First(0);
    loop {
        let record = match session.get(own, next, LockBias::None) {
            Ok(record) => record,
            Err(Status::EndOfFile) => return Ok(all),
            Err(status) => return Err(status),
        };
        let (file, field) = (&record[..NAME_BYTES], &record[NAME_BYTES + NUMBER_BYTES..]);
        all.entry(text(file)).or_default().push(text(field));
        next = Get::Next;
    }
}

/// Inserts the fields of a file.
pub fn insert(session: &mut Session, file: &str, fields: &[String]) -> Result<(), Status> {
    let own = session.open(OWN_FILE)?;
    for (number, field) in fields.iter().enumerate() {
        let mut record = key(file, number);
        record.extend_from_slice(field.as_bytes());
        record.resize(2 * NAME_BYTES + NUMBER_BYTES, 0);
        session.insert(own, &record)?;
    }
    Ok(())
}

/// Removes the fields of a file, if there are any.
pub fn remove(session: &mut Session, file: &str) -> Result<(), Status> {
    let own = session.open(OWN_FILE)?;
    for number in 0.. {
        match session.get(own, Get::Equal(0, &key(file, number)), LockBias::SingleWait) {
            Ok(_) => session.delete(own)?,
            Err(Status::KeyNotFound) => break,
            Err(status) => return Err(status),
        }
    }
    Ok(())
}
