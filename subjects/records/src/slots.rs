//! Data pages: slots of one length, each a state and a record.

use crate::page::{BODY, PAGE_BYTES, Page, kind};

/// The state of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Free for a new record.
    Free = 0,
    /// Has a record.
    Live = 1,
    /// The record is deleted, but keys or a transaction may still refer to it.
    Ghost = 2,
}

impl State {
    pub fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(State::Free),
            1 => Some(State::Live),
            2 => Some(State::Ghost),
            _ => None,
        }
    }
}

/// The position of a record: a page of its file, and a slot. It stays the same until the record is
/// deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    pub page: u32,
    pub slot: u16,
}

/// Length of a position in a key's entry.
pub const POSITION_BYTES: usize = 6;

impl Position {
    /// In normalised form, which compares byte by byte.
    pub fn to_bytes(self) -> [u8; POSITION_BYTES] {
        let [a, b, c, d] = self.page.to_be_bytes();
        let [e, f] = self.slot.to_be_bytes();
        [a, b, c, d, e, f]
    }

    /// From the end of a key's entry.
    pub fn of_entry(entry: &[u8]) -> Self {
        let (page, slot) = entry[entry.len() - POSITION_BYTES..].split_at(4);
        Self {
            page: u32::from_be_bytes(page.try_into().expect("four bytes")),
            slot: u16::from_be_bytes(slot.try_into().expect("two bytes")),
        }
    }

    pub fn number(self) -> u64 {
        u64::from(self.page) << 16 | u64::from(self.slot)
    }
}

/// Slots on a page.
pub fn slots_per_page(record_bytes: usize) -> usize {
    (PAGE_BYTES - BODY) / (1 + record_bytes)
}

fn start(slot: u16, record_bytes: usize) -> usize {
    BODY + usize::from(slot) * (1 + record_bytes)
}

/// A slot's state and record; `None` if the page has no such slot, or another state stands there.
pub fn read(page: &Page, slot: u16, record_bytes: usize) -> Option<(State, &[u8])> {
    if page.kind() != kind::DATA {
        return None;
    }
    let at = start(slot, record_bytes);
    let (state, record) = page.bytes().get(at..at + 1 + record_bytes)?.split_first()?;
    Some((State::from_byte(*state)?, record))
}

/// Changes a slot's state, and its record from a byte on.
pub fn write(
    page: &mut Page,
    slot: u16,
    record_bytes: usize,
    state: State,
    offset: usize,
    part: &[u8],
) {
    let at = start(slot, record_bytes);
    let bytes = page.bytes_mut();
    bytes[at] = state as u8;
    bytes[at + 1 + offset..at + 1 + offset + part.len()].copy_from_slice(part);
}
