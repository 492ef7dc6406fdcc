//! Data pages: slots of one length, each a state and a record.

use crate::page::{BODY, PAGE_BYTES, PageBytes, PageHeader, PageLook, PageMut, kind};

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
pub fn read(page: &PageBytes, slot: u16, record_bytes: usize) -> Option<(State, &[u8])> {
    if page.kind() != kind::DATA {
        return None;
    }
    let at = start(slot, record_bytes);
    let (state, record) = page.bytes().get(at..at + 1 + record_bytes)?.split_first()?;
    Some((State::from_byte(*state)?, record))
}

/// A slot's state as it is read without a latch; its record is copied to a buffer.
pub fn look(
    page: &PageLook,
    slot: u16,
    record_bytes: usize,
    record: &mut Vec<u8>,
) -> Option<State> {
    let start_of_page = page.number(0).to_be_bytes();
    let at = start(slot, record_bytes);
    if start_of_page[4] != kind::DATA || at + 1 + record_bytes > PAGE_BYTES {
        return None;
    }
    let mut state = [0];
    page.copy(at, &mut state);
    record.resize(record_bytes, 0);
    page.copy(at + 1, record);
    State::from_byte(state[0])
}

/// Changes a slot's state, and its record from a byte on.
pub fn write(
    page: &mut impl PageMut,
    slot: u16,
    record_bytes: usize,
    state: State,
    offset: usize,
    part: &[u8],
) {
    let at = start(slot, record_bytes);
    page.put(at, &[state as u8]);
    page.put(at + 1 + offset, part);
}
