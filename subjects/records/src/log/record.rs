//! Records of the log, as bytes.
//!
//! A frame has one record, or several that were appended together: `length: u32, checksum: u32, lsn: u64,
//! records`, little-endian. The checksum is CRC-32 of the records; the LSN is the byte of the log where the
//! frame begins, so that a leftover one of a reused file is not taken for a current one. The first byte of a
//! record is its kind, and it says by itself where it ends. Before format 3 of the store, each record had a
//! frame of its own.

use smallvec::{SmallVec, smallvec};

use crate::page::{PAGE_BYTES, PageId};
use crate::slots::{Position, State};

/// Length of the header before the records of a frame.
pub const FRAME: usize = 16;

/// The kind of a change of a slot. Before format 3, its numbers had a fixed length, and its kind was 2.
const CHANGE: u8 = 9;

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

    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Record::Format(page) => {
                out.push(1);
                put_page(*page, out);
            }
            Record::Slot(change) => put_change(change, out),
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

    /// `None` if the bytes are no record.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let record = Self::first(&mut from)?;
        from.0.is_empty().then_some(record)
    }

    /// The record that comes next; `None` if none does.
    fn first(from: &mut Reader<'a>) -> Option<Self> {
        Some(match from.u8()? {
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
            CHANGE => Record::Slot(from.change()?),
            _ => return None,
        })
    }
}

/// Adds a record to a frame; the first one begins it.
pub fn add(record: &Record, frame: &mut Vec<u8>) {
    if frame.is_empty() {
        frame.extend_from_slice(&[0; FRAME]);
    }
    record.encode(frame);
}

/// Ends a frame: writes its length and its checksum. Its LSN is not known yet; [`set_lsn`] writes it.
pub fn seal(frame: &mut [u8]) {
    let (header, records) = frame.split_at_mut(FRAME);
    let (length, checksum) = (records.len() as u32, crc32fast::hash(records));
    header[..4].copy_from_slice(&length.to_le_bytes());
    header[4..8].copy_from_slice(&checksum.to_le_bytes());
}

/// A frame with one record, sealed.
pub fn frame(record: &Record) -> Vec<u8> {
    let mut frame = Vec::with_capacity(256);
    add(record, &mut frame);
    seal(&mut frame);
    frame
}

/// Writes the LSN of a frame: the byte of the log where it begins.
pub fn set_lsn(frame: &mut [u8], lsn: u64) {
    frame[8..FRAME].copy_from_slice(&lsn.to_le_bytes());
}

/// The LSN in the header of the frame at the start of the bytes.
pub fn lsn_of(bytes: &[u8]) -> Option<u64> {
    let lsn = bytes.get(8..FRAME)?;
    Some(u64::from_le_bytes(lsn.try_into().ok()?))
}

/// A whole frame of the log.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    lsn: u64,
    records: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Its length, with the header.
    pub fn bytes(&self) -> usize {
        FRAME + self.records.len()
    }

    /// Its records, each with the byte of the log where it ends: so each of them has an LSN of its own.
    pub fn records(&self) -> impl Iterator<Item = (Record<'a>, u64)> + use<'a> {
        let Self { lsn, records } = *self;
        let mut from = Reader(records);
        std::iter::from_fn(move || {
            let record = Record::first(&mut from)?;
            let end = FRAME + records.len() - from.0.len();
            Some((record, lsn.saturating_add(end as u64)))
        })
    }

    fn is_sound(&self) -> bool {
        let mut from = Reader(self.records);
        while !from.0.is_empty() {
            if Record::first(&mut from).is_none() {
                return false;
            }
        }
        !self.records.is_empty()
    }
}

/// The frame at the start of the bytes, or `None` if there is no whole one that begins at this byte of the log.
pub fn read(bytes: &[u8], lsn: u64) -> Option<Frame<'_>> {
    let mut from = Reader(bytes);
    let (length, checksum) = (from.u32()? as usize, from.u32()?);
    if from.u64()? != lsn {
        return None;
    }
    let records = from.take(length)?;
    if crc32fast::hash(records) != checksum {
        return None;
    }
    let frame = Frame { lsn, records };
    frame.is_sound().then_some(frame)
}

/// The beginning of a change of a slot: all but the bytes that change. Its numbers have seven bits in each byte,
/// the least ones first, and the highest bit says that more follow: most of them are small.
struct Head {
    bytes: [u8; Self::MOST],
    length: usize,
}

impl Head {
    /// The kind and the states, a number of 64 bits, two of 32, and four of 16.
    const MOST: usize = 2 + 10 + 2 * 5 + 4 * 3;

    fn of(change: &SlotChange) -> Self {
        let mut head = Self {
            bytes: [0; Self::MOST],
            length: 0,
        };
        head.byte(CHANGE);
        head.byte((change.state_before as u8) << 4 | change.state_after as u8);
        head.number(change.transaction);
        head.number(change.file.into());
        head.number(change.position.page.into());
        head.number(change.position.slot.into());
        head.number(change.offset.into());
        head.number(change.before.len() as u64);
        head.number(change.after.len() as u64);
        head
    }

    fn byte(&mut self, byte: u8) {
        self.bytes[self.length] = byte;
        self.length += 1;
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }
}

fn put_change(change: &SlotChange, out: &mut Vec<u8>) {
    let head = Head::of(change);
    let head = &head.bytes[..head.length];
    out.reserve(head.len() + change.before.len() + change.after.len());
    out.extend_from_slice(head);
    out.extend_from_slice(change.before);
    out.extend_from_slice(change.after);
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

    /// As [`Head`] has it.
    fn number<T: TryFrom<u64>>(&mut self) -> Option<T> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            // None of them is beyond the last one of the number.
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return T::try_from(number).ok();
            }
        }
        None
    }

    fn change(&mut self) -> Option<SlotChange<'a>> {
        let states = self.u8()?;
        let (transaction, file) = (self.number()?, self.number()?);
        let (page, slot) = (self.number()?, self.number()?);
        let offset = self.number()?;
        let (before, after): (u16, u16) = (self.number()?, self.number()?);
        Some(SlotChange {
            transaction,
            file,
            position: Position { page, slot },
            state_before: State::from_byte(states >> 4)?,
            state_after: State::from_byte(states & 0xf)?,
            offset,
            before: self.take(before.into())?,
            after: self.take(after.into())?,
        })
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

    /// A frame has these records, and none if it is damaged, cut, or at another place.
    fn is_read_back(
        bytes: &[u8],
        lsn: u64,
        records: &[Record],
        at: usize,
        flip: u8,
    ) -> Result<(), TestCaseError> {
        let frame = read(bytes, lsn).unwrap();
        prop_assert_eq!(frame.bytes(), bytes.len());
        let (found, ends): (Vec<_>, Vec<_>) = frame.records().unzip();
        prop_assert_eq!(&found[..], records);
        prop_assert!(ends.is_sorted_by(|one, other| one < other));
        prop_assert_eq!(ends.last(), Some(&(lsn + bytes.len() as u64)));
        prop_assert!(read(bytes, lsn.wrapping_add(1)).is_none());
        let at = at % bytes.len();
        prop_assert!(read(&bytes[..at], lsn).is_none());
        let mut bytes = bytes.to_vec();
        bytes[at] ^= flip;
        prop_assert!(read(&bytes, lsn).is_none());
        Ok(())
    }

    proptest! {
        #[test]
        fn a_record_is_read_back_and_a_damaged_or_misplaced_one_is_not(
            before in proptest::collection::vec(any::<u8>(), 0..64),
            after in proptest::collection::vec(any::<u8>(), 0..64),
            transaction: u64, file: u32, page: u32, slot: u16, offset: u16, lsn in 0..u64::MAX >> 1,
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
            let mut all = Vec::new();
            for record in &records {
                let mut out = frame(record);
                set_lsn(&mut out, lsn);
                is_read_back(&out, lsn, std::slice::from_ref(record), at, flip)?;
                add(record, &mut all);
            }
            seal(&mut all);
            set_lsn(&mut all, lsn);
            is_read_back(&all, lsn, &records, at, flip)?;
        }

        #[test]
        fn garbage_is_no_record_and_no_panic(garbage in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(read(&garbage, 0).is_none());
            let _ = Record::decode(&garbage);
        }
    }
}
