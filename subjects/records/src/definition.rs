//! The definition of a file: the length of its records, and its keys.

use smallvec::SmallVec;

use crate::error::Fault;
use crate::page::{BODY, PAGE_BYTES};

/// The largest number of keys of a file, as in Btrieve.
pub const KEYS_MAX: usize = 119;
/// Longest key value in bytes, as in Btrieve.
pub const KEY_BYTES_MAX: usize = 255;
/// Longest record in bytes: one fits on a page.
pub const RECORD_BYTES_MAX: usize = PAGE_BYTES - BODY - 1;

/// A value of a key, or an entry, which is a value and a position: short ones need no memory of their own.
pub type Entry = SmallVec<[u8; 32]>;

/// A part of a record that is part of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// First byte in the record, from 0.
    pub offset: u16,
    /// Length in bytes; of a number at most 8.
    pub bytes: u16,
    pub kind: SegmentKind,
}

/// How values of a segment compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentKind {
    /// Byte by byte from the first.
    Bytes,
    /// An unsigned integer, little-endian.
    Unsigned,
    /// A signed integer in two's complement, little-endian.
    Integer,
}

/// A key: segments one after another, the first the most significant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub segments: Vec<Segment>,
    pub duplicates: bool,
}

impl Key {
    /// A key of one segment without duplicates.
    pub fn unique(offset: u16, bytes: u16, kind: SegmentKind) -> Self {
        let segments = vec![Segment {
            offset,
            bytes,
            kind,
        }];
        Self {
            segments,
            duplicates: false,
        }
    }

    pub fn with_duplicates(mut self) -> Self {
        self.duplicates = true;
        self
    }

    /// Length of its values in bytes.
    pub fn bytes(&self) -> usize {
        self.segments.iter().map(|it| usize::from(it.bytes)).sum()
    }

    /// Appends a record's value in normalised form, which compares byte by byte.
    pub fn extract(&self, record: &[u8], out: &mut Entry) {
        for segment in &self.segments {
            let (from, at) = (usize::from(segment.offset), out.len());
            out.extend_from_slice(&record[from..from + usize::from(segment.bytes)]);
            segment.normalise(&mut out[at..]);
        }
    }

    /// Whether two records have different values.
    pub fn differs(&self, one: &[u8], other: &[u8]) -> bool {
        self.segments.iter().any(|it| {
            let from = usize::from(it.offset);
            let part = from..from + usize::from(it.bytes);
            one[part.clone()] != other[part]
        })
    }

    /// Whether a record has a value, which is normalised.
    pub fn has_value(&self, record: &[u8], value: &[u8]) -> bool {
        let mut rest = value;
        self.segments.iter().all(|segment| {
            let (value, after) = rest.split_at(usize::from(segment.bytes));
            rest = after;
            segment.has_value(&record[usize::from(segment.offset)..][..value.len()], value)
        })
    }

    /// Brings a value from the form in which it stands in records into the one that compares byte by byte.
    ///
    /// The value must be as long as the key.
    pub fn normalise(&self, value: &mut [u8]) {
        let mut rest = value;
        for segment in &self.segments {
            let (part, after) = rest.split_at_mut(usize::from(segment.bytes));
            segment.normalise(part);
            rest = after;
        }
    }
}

impl Segment {
    /// Whether a part of a record is this normalised value.
    fn has_value(&self, part: &[u8], value: &[u8]) -> bool {
        match self.kind {
            SegmentKind::Bytes => part == value,
            SegmentKind::Unsigned => part.iter().rev().eq(value),
            SegmentKind::Integer => {
                let (sign, rest) = (value[0] ^ 0x80, &value[1..]);
                part.iter().rev().eq(std::iter::once(&sign).chain(rest))
            }
        }
    }

    fn normalise(&self, part: &mut [u8]) {
        match self.kind {
            SegmentKind::Bytes => {}
            SegmentKind::Unsigned => part.reverse(),
            SegmentKind::Integer => {
                part.reverse();
                part[0] ^= 0x80;
            }
        }
    }
}

/// A file of records of one length. A file without keys is what Btrieve calls data-only: records
/// can be inserted and counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDefinition {
    pub record_bytes: u16,
    pub keys: Vec<Key>,
}

impl FileDefinition {
    /// Refuses an invalid definition.
    pub fn check(&self) -> Result<(), Fault> {
        let refuse = |text: String| Err(Fault::Definition(text));
        let length = usize::from(self.record_bytes);
        if !(1..=RECORD_BYTES_MAX).contains(&length) {
            return refuse(format!(
                "records of {length} bytes: a record has 1 to {RECORD_BYTES_MAX}"
            ));
        }
        let keys = self.keys.len();
        if keys > KEYS_MAX {
            return refuse(format!("{keys} keys: a file has at most {KEYS_MAX}"));
        }
        let definition_bytes = self.encode().len();
        if definition_bytes > PAGE_BYTES - BODY {
            return refuse(format!(
                "a definition of {definition_bytes} bytes: it has at most {}; use fewer segments",
                PAGE_BYTES - BODY
            ));
        }
        for (number, key) in self.keys.iter().enumerate() {
            if key.segments.len() > KEY_BYTES_MAX || !(1..=KEY_BYTES_MAX).contains(&key.bytes()) {
                let bytes = key.bytes();
                return refuse(format!(
                    "key {number} has {bytes} bytes: a key has 1 to {KEY_BYTES_MAX}"
                ));
            }
            for segment in &key.segments {
                let end = usize::from(segment.offset) + usize::from(segment.bytes);
                if end > length {
                    return refuse(format!(
                        "key {number} reaches byte {end} of records of {length} bytes"
                    ));
                }
                if segment.bytes == 0 || (segment.kind != SegmentKind::Bytes && segment.bytes > 8) {
                    let bytes = segment.bytes;
                    return refuse(format!(
                        "key {number} has a segment of {bytes} bytes: numbers have 1 to 8, others \
                         1 or more"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The bytes on the first page of the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.record_bytes.to_le_bytes().to_vec();
        out.push(self.keys.len() as u8);
        for key in &self.keys {
            out.extend([u8::from(key.duplicates), key.segments.len() as u8]);
            for segment in &key.segments {
                out.extend(segment.offset.to_le_bytes());
                out.extend(segment.bytes.to_le_bytes());
                out.push(segment.kind as u8);
            }
        }
        out
    }

    /// `None` if the bytes are no definition.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let record_bytes = u16::from_le_bytes(take(&mut bytes)?);
        let [keys] = take(&mut bytes)?;
        let keys: Option<Vec<Key>> = (0..keys).map(|_| decode_key(&mut bytes)).collect();
        let definition = Self {
            record_bytes,
            keys: keys?,
        };
        definition.check().ok()?;
        Some(definition)
    }
}

fn decode_key(bytes: &mut &[u8]) -> Option<Key> {
    let [duplicates, segments] = take(bytes)?;
    let mut key = Key {
        segments: Vec::new(),
        duplicates: duplicates != 0,
    };
    for _ in 0..segments {
        key.segments.push(Segment {
            offset: u16::from_le_bytes(take(bytes)?),
            bytes: u16::from_le_bytes(take(bytes)?),
            kind: match take(bytes)? {
                [0] => SegmentKind::Bytes,
                [1] => SegmentKind::Unsigned,
                [2] => SegmentKind::Integer,
                _ => return None,
            },
        });
    }
    Some(key)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_record_has_the_value_that_is_extracted_and_no_other(
            record in prop::collection::vec(any::<u8>(), 24),
            other in prop::collection::vec(any::<u8>(), 24),
            kinds in prop::collection::vec(0..3, 1..4),
        ) {
            let kinds = kinds.iter().map(|kind| match kind {
                0 => SegmentKind::Bytes,
                1 => SegmentKind::Unsigned,
                _ => SegmentKind::Integer,
            });
            let segments = kinds.enumerate().map(|(at, kind)| Segment {
                offset: 8 * at as u16,
                bytes: 1 + 3 * at as u16,
                kind,
            });
            let key = Key { segments: segments.collect(), duplicates: false };
            let extracted = |record: &[u8]| {
                let mut value = Entry::new();
                key.extract(record, &mut value);
                value
            };
            let (value, others) = (extracted(&record), extracted(&other));
            prop_assert!(key.has_value(&record, &value));
            prop_assert_eq!(key.has_value(&record, &others), value == others);
        }
    }
}
