//! Records of the log, as bytes.
//!
//! `length: u32, checksum: u32, lsn: u64, body`, little-endian. The checksum is CRC-32 of the body;
//! the LSN is the byte of the log where the record begins, so that a leftover record of a reused
//! file is not taken for a current one. The first byte of the body is its kind.

use smallvec::{SmallVec, smallvec};

use crate::page::{PAGE_BYTES, PageId};
use crate::slots::{Position, State};

/// Length of the header before the body.
pub const FRAME: usize = 16;

/// The transaction number of changes that are never undone.
pub const SYSTEM: u64 = 0;

/// A change of one slot. Bytes outside of `before` and `after` stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotChange<'a> {
    /// The change is undone if this transaction does not commit; [`SYSTEM`]: never.
    pub transaction: u64,
    pub file: u32,
    pub position: Position,
    pub state_before: State,
    pub state_after: State,
    /// First byte of the record that changes.
    pub offset: u16,
    pub before: &'a [u8],
    pub after: &'a [u8],
}

impl SlotChange<'_> {
    /// The page that the slot is on.
    pub fn page(&self) -> PageId {
        PageId {
            file: self.file,
            number: self.position.page,
        }
    }
}

/// A record of the log. Each is applied completely or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record<'a> {
    /// The page becomes an empty page of records.
    Format(PageId),
    Slot(SlotChange<'a>),
    /// An entry is inserted at an index of a leaf.
    EntryIn(PageId, u16, &'a [u8]),
    /// An entry of this length is removed at an index of a leaf.
    EntryOut(PageId, u16, u16),
    /// New contents of pages: a node is split.
    Images(Vec<(PageId, &'a [u8])>),
    /// The transaction is committed. If it needs a purge, its [`Record::Finished`] follows.
    Commit {
        transaction: u64,
        needs_purge: bool,
    },
    /// The transaction is purged or undone completely.
    Finished {
        transaction: u64,
    },
    /// All before this byte of the log was forced to the disk before this record was written.
    Forced {
        before: u64,
    },
}

impl<'a> Record<'a> {
    /// The pages that it changes.
    pub fn pages(&self) -> SmallVec<[PageId; 4]> {
        match self {
            Record::Format(page) | Record::EntryIn(page, ..) | Record::EntryOut(page, ..) => {
                smallvec![*page]
            }
            Record::Slot(change) => smallvec![change.page()],
            Record::Images(images) => images.iter().map(|(page, _)| *page).collect(),
            Record::Commit { .. } | Record::Finished { .. } | Record::Forced { .. } => smallvec![],
        }
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Record::Format(page) => {
                out.push(1);
                put_page(*page, out);
            }
            Record::Slot(change) => {
                out.push(2);
                out.extend(change.transaction.to_le_bytes());
                out.extend(change.file.to_le_bytes());
                out.extend(change.position.page.to_le_bytes());
                out.extend(change.position.slot.to_le_bytes());
                out.extend([change.state_before as u8, change.state_after as u8]);
                out.extend(change.offset.to_le_bytes());
                put_bytes(change.before, out);
                put_bytes(change.after, out);
            }
            Record::EntryIn(page, index, entry) => {
                out.push(3);
                put_page(*page, out);
                out.extend(index.to_le_bytes());
                put_bytes(entry, out);
            }
            Record::EntryOut(page, index, bytes) => {
                out.push(4);
                put_page(*page, out);
                out.extend(index.to_le_bytes());
                out.extend(bytes.to_le_bytes());
            }
            Record::Images(images) => {
                out.push(5);
                out.push(images.len() as u8);
                for (page, bytes) in images {
                    put_page(*page, out);
                    out.extend_from_slice(bytes);
                }
            }
            Record::Commit {
                transaction,
                needs_purge,
            } => {
                out.push(6);
                out.extend(transaction.to_le_bytes());
                out.push(u8::from(*needs_purge));
            }
            Record::Finished { transaction } => {
                out.push(7);
                out.extend(transaction.to_le_bytes());
            }
            Record::Forced { before } => {
                out.push(8);
                out.extend(before.to_le_bytes());
            }
        }
    }

    /// `None` if the bytes are no valid body.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let record = match from.u8()? {
            1 => Record::Format(from.page()?),
            2 => Record::Slot(SlotChange {
                transaction: from.u64()?,
                file: from.u32()?,
                position: Position {
                    page: from.u32()?,
                    slot: from.u16()?,
                },
                state_before: State::from_byte(from.u8()?)?,
                state_after: State::from_byte(from.u8()?)?,
                offset: from.u16()?,
                before: from.bytes()?,
                after: from.bytes()?,
            }),
            3 => Record::EntryIn(from.page()?, from.u16()?, from.bytes()?),
            4 => Record::EntryOut(from.page()?, from.u16()?, from.u16()?),
            5 => {
                let count = from.u8()?;
                let image = |_| Some((from.page()?, from.take(PAGE_BYTES)?));
                Record::Images((0..count).map(image).collect::<Option<_>>()?)
            }
            6 => Record::Commit {
                transaction: from.u64()?,
                needs_purge: from.u8()? != 0,
            },
            7 => Record::Finished {
                transaction: from.u64()?,
            },
            8 => Record::Forced {
                before: from.u64()?,
            },
            _ => return None,
        };
        from.0.is_empty().then_some(record)
    }
}

/// Appends a record whose LSN is not known yet; [`set_lsns`] writes it.
pub fn frame(record: &Record, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME]);
    record.encode(out);
    let body = &out[start + FRAME..];
    let (length, checksum) = (body.len() as u32, crc32fast::hash(body));
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&checksum.to_le_bytes());
}

/// Writes the LSNs of framed records that stand one after the other in the log from a byte on.
pub fn set_lsns(framed: &mut [u8], first: u64) {
    let mut at = 0;
    while let Some(header) = framed.get_mut(at..at + FRAME) {
        let lsn = first + at as u64;
        header[8..].copy_from_slice(&lsn.to_le_bytes());
        let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        at += FRAME + length as usize;
    }
}

/// The LSN in the header of the record at the start of the bytes.
pub fn lsn_of(bytes: &[u8]) -> Option<u64> {
    let lsn = bytes.get(8..FRAME)?;
    Some(u64::from_le_bytes(lsn.try_into().ok()?))
}

/// The record at the start of the bytes and its length with the header, or `None` if there is no
/// complete one that begins at this byte of the log.
pub fn read(bytes: &[u8], lsn: u64) -> Option<(Record<'_>, usize)> {
    let mut from = Reader(bytes);
    let (length, checksum) = (from.u32()? as usize, from.u32()?);
    if from.u64()? != lsn {
        return None;
    }
    let body = from.take(length)?;
    if crc32fast::hash(body) != checksum {
        return None;
    }
    Some((Record::decode(body)?, FRAME + length))
}

fn put_page(page: PageId, out: &mut Vec<u8>) {
    out.extend(page.file.to_le_bytes());
    out.extend(page.number.to_le_bytes());
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend((bytes.len() as u16).to_le_bytes());
    out.extend_from_slice(bytes);
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(first)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn page(&mut self) -> Option<PageId> {
        Some(PageId {
            file: self.u32()?,
            number: self.u32()?,
        })
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.u16()?;
        self.take(usize::from(length))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_record_is_read_back_and_a_damaged_or_misplaced_one_is_not(
            before in proptest::collection::vec(any::<u8>(), 0..64),
            after in proptest::collection::vec(any::<u8>(), 0..64),
            transaction: u64, file: u32, page: u32, slot: u16, offset: u16, lsn: u64,
            at: usize, flip in 1..=255_u8,
        ) {
            let id = PageId { file, number: page };
            let records = [
                Record::Format(id),
                Record::Slot(SlotChange {
                    transaction, file, position: Position { page, slot },
                    state_before: State::Live, state_after: State::Ghost, offset,
                    before: &before, after: &after,
                }),
                Record::EntryIn(id, slot, &after),
                Record::EntryOut(id, slot, offset),
                Record::Images(vec![(id, &[7; PAGE_BYTES])]),
                Record::Commit { transaction, needs_purge: true },
                Record::Finished { transaction },
                Record::Forced { before: lsn },
            ];
            for record in records {
                let mut out = Vec::new();
                frame(&record, &mut out);
                set_lsns(&mut out, lsn);
                prop_assert_eq!(read(&out, lsn), Some((record, out.len())));
                prop_assert_eq!(read(&out, lsn.wrapping_add(1)), None);
                prop_assert_eq!(read(&out[..at % out.len()], lsn), None);
                let at = at % out.len();
                out[at] ^= flip;
                prop_assert_eq!(read(&out, lsn), None);
            }
        }

        #[test]
        fn garbage_is_no_record_and_no_panic(garbage in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert_eq!(read(&garbage, 0), None);
            let _ = Record::decode(&garbage);
        }
    }
}
