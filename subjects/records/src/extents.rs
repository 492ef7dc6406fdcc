//! Which pages of each file were written at a checkpoint, so that a start notices pages that are
//! blank because the file was cut or a part of it was lost.
//!
//! Two files, written alternately. `magic 16 bytes, sequence: u64, count: u32`, then for each file
//! `number: u32, pages: u32, blank: u8`, the numbers of blank pages (u32), `length: u8`, the name; at
//! the end a CRC-32 of all before. A file that cannot be read is ignored: then less is noticed.

use std::sync::Arc;

use crate::error::Fault;
use crate::storage::{Disk, Storage};

const MAGIC: &[u8; 16] = b"concurve pages1\n";
const NAMES: [&str; 2] = ["extents-0", "extents-1"];
/// More blank pages of a file are not noted: its extent ends before.
pub const BLANK_MAX: usize = 64;

/// The pages of a file that were written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extent {
    /// Number of the file.
    pub file: u32,
    pub name: String,
    /// All pages with lower numbers were written, but for `blank`.
    pub pages: u32,
    pub blank: Vec<u32>,
}

impl Extent {
    /// Whether a page was written.
    pub fn has(&self, page: u32) -> bool {
        page < self.pages && !self.blank.contains(&page)
    }
}

/// Opens both files.
pub fn open(storage: &dyn Storage) -> Result<[Arc<dyn Disk>; 2], Fault> {
    let open = |name: &str| {
        let opened = storage.open(name);
        opened.map_err(Fault::io(|| format!("open the file {name}")))
    };
    Ok([open(NAMES[0])?, open(NAMES[1])?])
}

/// The extents that were written with a sequence number; none if the file does not have them.
pub fn read(storage: &dyn Storage, sequence: u64, names: &[String]) -> Result<Vec<Extent>, Fault> {
    let name = NAMES[(sequence % 2) as usize];
    if !names.iter().any(|it| it == name) {
        return Ok(Vec::new());
    }
    let what = || format!("read the file {name}");
    let disk = storage.open(name).map_err(Fault::io(what))?;
    let length = disk.length().map_err(Fault::io(what))?;
    let mut bytes = vec![0; length.min(1 << 30) as usize];
    let read = disk.read_at(&mut bytes, 0).map_err(Fault::io(what))?;
    Ok(decode(&bytes[..read], sequence).unwrap_or_default())
}

/// Writes the extents durably.
pub fn write(disk: &dyn Disk, sequence: u64, extents: &[Extent]) -> Result<(), Fault> {
    let what = || format!("write the file {}", NAMES[(sequence % 2) as usize]);
    let bytes = encode(sequence, extents);
    disk.write_at(&bytes, 0).map_err(Fault::io(what))?;
    disk.sync().map_err(Fault::io(what))
}

fn encode(sequence: u64, extents: &[Extent]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend(sequence.to_le_bytes());
    out.extend((extents.len() as u32).to_le_bytes());
    for extent in extents {
        out.extend(extent.file.to_le_bytes());
        out.extend(extent.pages.to_le_bytes());
        out.push(extent.blank.len() as u8);
        out.extend(extent.blank.iter().flat_map(|it| it.to_le_bytes()));
        out.push(extent.name.len() as u8);
        out.extend(extent.name.as_bytes());
    }
    out.extend(crc32fast::hash(&out).to_le_bytes());
    out
}

fn decode(bytes: &[u8], sequence: u64) -> Option<Vec<Extent>> {
    let mut rest = bytes;
    let of_sequence = sequence.to_le_bytes();
    let is_right = take(&mut rest, 16)? == MAGIC && take(&mut rest, 8)? == of_sequence;
    let count = number(&mut rest)?;
    let mut extents = Vec::new();
    for _ in 0..if is_right { count } else { return None } {
        let (file, pages) = (number(&mut rest)?, number(&mut rest)?);
        let many = take(&mut rest, 1)?[0];
        let blank: Option<Vec<u32>> = (0..many).map(|_| number(&mut rest)).collect();
        let length = take(&mut rest, 1)?[0];
        let name = std::str::from_utf8(take(&mut rest, usize::from(length))?).ok()?;
        extents.push(Extent {
            file,
            name: name.to_owned(),
            pages,
            blank: blank?,
        });
    }
    // The file may be longer: it is not cut when it is written again.
    let whole = bytes.len() - rest.len();
    (number(&mut rest)? == crc32fast::hash(&bytes[..whole])).then_some(extents)
}

fn take<'a>(from: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (first, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(first)
}

fn number(from: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(take(from, 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn extents_are_read_back_and_damaged_ones_are_not(
            sequence: u64, pages: u32, name in "[a-z]{1,64}",
            blank in proptest::collection::vec(any::<u32>(), 0..BLANK_MAX),
            garbage in proptest::collection::vec(any::<u8>(), 0..64),
            at: usize, flip in 1..=255_u8,
        ) {
            let extents = vec![Extent { file: 3, name, pages, blank }, Extent::default()];
            let mut bytes = encode(sequence, &extents);
            let length = bytes.len();
            bytes.extend(&garbage);
            prop_assert_eq!(decode(&bytes, sequence), Some(extents));
            prop_assert_eq!(decode(&bytes, sequence.wrapping_add(1)), None);
            prop_assert_eq!(decode(&bytes[..at % length], sequence), None);
            bytes[at % length] ^= flip;
            prop_assert_eq!(decode(&bytes, sequence), None);
            let _ = decode(&garbage, sequence);
        }
    }
}
