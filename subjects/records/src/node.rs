//! Nodes of a key's tree: sorted entries of one length.
//!
//! An entry of a leaf is a key value and a position, so no two are equal. An entry of an inner node
//! is the least such pair of a child, and the number of that child. Entries less than the first one
//! are below the page's first child.

use crate::page::{BODY, PAGE_BYTES, Page, PageBytes, PageHeader, PageMut, kind};

/// Length of the number of a child.
pub const CHILD_BYTES: usize = 4;

/// Length of entries, from the length of their compared part and the level of the node.
pub fn entry_bytes(compared: usize, level: u8) -> usize {
    compared + if level > 0 { CHILD_BYTES } else { 0 }
}

/// Whether a node can hold so many entries.
pub fn fits(count: usize, compared: usize, level: u8) -> bool {
    count * entry_bytes(compared, level) <= PAGE_BYTES - BODY
}

pub fn is_full(page: &PageBytes, compared: usize) -> bool {
    !fits(page.count() + 1, compared, page.level())
}

/// Whether a page is a node whose entries are all on it.
pub fn is_node(page: &PageBytes, compared: usize) -> bool {
    page.kind() == kind::NODE && fits(page.count(), compared, page.level())
}

/// The part of an entry that is compared.
pub fn entry(page: &PageBytes, index: usize, compared: usize) -> &[u8] {
    let at = BODY + index * entry_bytes(compared, page.level());
    &page.bytes()[at..at + compared]
}

/// Index of the first entry that is not less than `bound`.
pub fn lower_bound(page: &PageBytes, compared: usize, bound: &[u8]) -> usize {
    partition(page, compared, |entry| entry < bound)
}

/// Index of the first entry that is greater than `bound`.
pub fn upper_bound(page: &PageBytes, compared: usize, bound: &[u8]) -> usize {
    partition(page, compared, |entry| entry <= bound)
}

fn partition(page: &PageBytes, compared: usize, before: impl Fn(&[u8]) -> bool) -> usize {
    let (mut low, mut high) = (0, page.count());
    while low < high {
        let middle = (low + high) / 2;
        if before(entry(page, middle, compared)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The child at an index of an inner node; 0 is the one before the first entry.
pub fn child(page: &PageBytes, index: usize, compared: usize) -> u32 {
    if index == 0 {
        return page.first_child();
    }
    let at = BODY + (index - 1) * entry_bytes(compared, page.level()) + compared;
    u32::from_le_bytes(page.bytes()[at..at + CHILD_BYTES].try_into().expect("four"))
}

/// All entries, one after another.
pub fn entries(page: &PageBytes, compared: usize) -> &[u8] {
    let end = BODY + page.count() * entry_bytes(compared, page.level());
    &page.bytes()[BODY..end]
}

/// Replaces all entries.
pub fn set_entries(page: &mut Page, compared: usize, entries: &[u8]) {
    let count = entries.len() / entry_bytes(compared, page.level());
    page.set_count(count);
    let body = &mut page.bytes_mut()[BODY..];
    body[..entries.len()].copy_from_slice(entries);
    body[entries.len()..].fill(0);
}

/// Inserts an entry at an index.
pub fn insert(page: &mut impl PageMut, index: usize, entry: &[u8]) {
    let count = page.count();
    let (at, end) = (BODY + index * entry.len(), BODY + count * entry.len());
    page.shift(at..end, at + entry.len());
    page.put(at, entry);
    page.set_count(count + 1);
}

/// Removes the entry at an index.
pub fn remove(page: &mut impl PageMut, index: usize, entry_bytes: usize) {
    let count = page.count();
    let (at, end) = (BODY + index * entry_bytes, BODY + count * entry_bytes);
    page.shift(at + entry_bytes..end, at);
    page.set_count(count - 1);
}
