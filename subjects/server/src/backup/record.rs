//! Records of the backup file, as bytes.
//!
//! `length: u32, checksum: u32, body`, little-endian; the checksum is CRC-32 of the body. The body
//! is `count: u32, mode: u8` and three texts (table, argument, owner), each after its length as u8.

use crate::lock_table::mode::Mode;

/// First bytes of a backup file. In format 1 records follow at once; in format 2 a [`Mark`] is between.
pub const HEADER_OF_FORMAT_1: &[u8] = b"concurve locks 1\n";
pub const HEADER: &[u8] = b"concurve locks 2\n";

/// Up to where the file was written: `end: u64, boot: u64, checksum: u32`.
///
/// It is written after the records, so it never says too much; but with durability `process` the machine
/// may have stopped since, and have lost the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Length of the file in bytes.
    pub end: u64,
    /// The start of the machine in which it is valid; 0: in all.
    pub boot: u64,
}

impl Mark {
    pub const BYTES: usize = 20;

    pub fn encode(self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..8].copy_from_slice(&self.end.to_le_bytes());
        out[8..16].copy_from_slice(&self.boot.to_le_bytes());
        let checksum = crc32fast::hash(&out[..16]);
        out[16..].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// `None` if it is damaged.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (body, checksum) = bytes.get(..Self::BYTES)?.split_at(16);
        let (end, boot) = body.split_at(8);
        let mark = Self {
            end: u64::from_le_bytes(end.try_into().ok()?),
            boot: u64::from_le_bytes(boot.try_into().ok()?),
        };
        (crc32fast::hash(body).to_le_bytes() == checksum).then_some(mark)
    }
}

const FRAME: usize = 8;
/// Longest body: count, mode, and three texts of 255 bytes.
const BODY_MAX: usize = 5 + 3 * 256;

/// How often a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    pub count: u32,
    pub mode: Mode,
    pub table: &'a [u8],
    pub argument: &'a [u8],
    pub owner: &'a [u8],
}

/// Appends a record.
pub fn encode(record: &Record, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME]);
    out.extend_from_slice(&record.count.to_le_bytes());
    out.push(record.mode.letter().as_bytes()[0]);
    for text in [record.table, record.argument, record.owner] {
        out.push(text.len() as u8);
        out.extend_from_slice(text);
    }
    let body = &out[start + FRAME..];
    let (length, checksum) = (body.len() as u32, crc32fast::hash(body));
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..start + FRAME].copy_from_slice(&checksum.to_le_bytes());
}

/// The record at the start of `bytes`, and its length with its frame; `None` if there is no whole
/// and undamaged one.
pub fn decode(bytes: &[u8]) -> Option<(Record<'_>, usize)> {
    let number = |at: usize| {
        let bytes = bytes.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let (length, checksum) = (number(0)? as usize, number(4)?);
    if length > BODY_MAX {
        return None;
    }
    let body = bytes.get(FRAME..FRAME + length)?;
    if crc32fast::hash(body) != checksum {
        return None;
    }
    let (mode, mut rest) = (Mode::from_letter(body.get(4..5)?)?, &body[5..]);
    let mut text = || {
        let (length, after) = rest.split_first()?;
        let (text, after) = after.split_at_checked(usize::from(*length))?;
        rest = after;
        Some(text)
    };
    let record = Record {
        count: number(FRAME)?,
        mode,
        table: text()?,
        argument: text()?,
        owner: text()?,
    };
    rest.is_empty().then_some((record, FRAME + length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(any::<u8>(), 0..=255)
    }

    proptest! {
        #[test]
        fn a_record_is_read_back_and_a_damaged_one_is_not(
            count: u32, table in bytes(), argument in bytes(), owner in bytes(),
            at: usize, flip in 1..=255_u8,
        ) {
            let (table, argument, owner) = (&table[..], &argument[..], &owner[..]);
            let record = Record { count, mode: Mode::Sole, table, argument, owner };
            let mut out = Vec::new();
            encode(&record, &mut out);
            prop_assert_eq!(decode(&out), Some((record, out.len())));
            prop_assert_eq!(decode(&out[..at % out.len()]), None);
            let at = at % out.len();
            out[at] ^= flip;
            prop_assert_eq!(decode(&out), None);
        }

        #[test]
        fn a_mark_is_read_back_and_a_damaged_one_is_not(
            end: u64, boot: u64, at in 0..Mark::BYTES, flip in 1..=255_u8,
        ) {
            let mark = Mark { end, boot };
            let mut bytes = mark.encode();
            prop_assert_eq!(Mark::decode(&bytes), Some(mark));
            prop_assert_eq!(Mark::decode(&bytes[..at]), None);
            bytes[at] ^= flip;
            prop_assert_eq!(Mark::decode(&bytes), None);
        }

        #[test]
        fn garbage_is_no_record_and_no_panic(garbage in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert_eq!(decode(&garbage), None);
        }
    }
}
