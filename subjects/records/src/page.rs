//! Pages: the unit of the cache, of the disk and of latching.
//!
//! Header, little-endian: checksum u32 at 0 (CRC-32 of all that follows), kind u8 at 4, level u8
//! at 5, count u16 at 6, LSN u64 at 8, file u32 at 16, number u32 at 20, right u32 at 24, first
//! child u32 at 28. [`slots`](crate::slots) and [`node`](crate::node) describe the body.

use std::ops::{Deref, Range};

use concurve_latch::Snapshot;

/// Length of a page in bytes.
pub const PAGE_BYTES: usize = 8192;
/// Where the body begins.
pub const BODY: usize = 32;

/// Which page of which file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageId {
    pub file: u32,
    pub number: u32,
}

impl PageId {
    /// Whether another page follows this one in its file.
    pub fn is_before(self, other: Self) -> bool {
        self.file == other.file && self.number.checked_add(1) == Some(other.number)
    }
}

impl std::fmt::Display for PageId {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "page {} of file {}", self.number, self.file)
    }
}

/// The kinds of pages.
pub mod kind {
    /// Never written.
    pub const BLANK: u8 = 0;
    /// The first page of a file: its definition.
    pub const HEADER: u8 = 1;
    /// Records.
    pub const DATA: u8 = 2;
    /// A node of a key's tree.
    pub const NODE: u8 = 3;
}

/// The bytes of a page, owned or in the cache.
pub type PageBytes = [u8; PAGE_BYTES];

/// The words of a page in the cache.
pub const PAGE_WORDS: usize = PAGE_BYTES / 8;

/// A page in the cache as it is read without latch and pin.
pub type PageLook<'a> = Snapshot<'a, PAGE_WORDS>;

/// What the header of a page says.
pub trait PageHeader {
    fn bytes(&self) -> &PageBytes;

    fn kind(&self) -> u8 {
        self.bytes()[4]
    }

    /// Height of a node above the leaves.
    fn level(&self) -> u8 {
        self.bytes()[5]
    }

    /// The number of entries of a node.
    fn count(&self) -> usize {
        usize::from(u16_at(self.bytes(), 6))
    }

    /// The checksum that [`PageMut::seal`] has set.
    fn checksum(&self) -> u32 {
        u32_at(self.bytes(), 0)
    }

    /// The end of the log record that changed the page last.
    fn lsn(&self) -> u64 {
        u64::from_le_bytes(self.bytes()[8..16].try_into().expect("eight bytes"))
    }

    fn id(&self) -> PageId {
        PageId {
            file: u32_at(self.bytes(), 16),
            number: u32_at(self.bytes(), 20),
        }
    }

    /// The next leaf, 0 for none.
    fn right(&self) -> u32 {
        u32_at(self.bytes(), 24)
    }

    /// The child of an inner node with the entries less than its first one.
    fn first_child(&self) -> u32 {
        u32_at(self.bytes(), 28)
    }
}

impl PageHeader for PageBytes {
    fn bytes(&self) -> &PageBytes {
        self
    }
}

/// A page that can be changed.
pub trait PageMut: Deref<Target = PageBytes> {
    /// Changes bytes from a place on.
    fn put(&mut self, at: usize, bytes: &[u8]);

    /// Copies bytes to another place, which may overlap theirs.
    fn shift(&mut self, from: Range<usize>, to: usize);

    /// Clears the page and sets its kind.
    fn format(&mut self, id: PageId, kind: u8) {
        self.put(0, &[0; PAGE_BYTES]);
        self.put(4, &[kind]);
        self.put(16, &id.file.to_le_bytes());
        self.put(20, &id.number.to_le_bytes());
    }

    fn set_count(&mut self, count: usize) {
        self.put(6, &(count as u16).to_le_bytes());
    }

    fn set_lsn(&mut self, lsn: u64) {
        self.put(8, &lsn.to_le_bytes());
    }

    /// Sets the checksum, before the page is written to the disk.
    fn seal(&mut self) {
        let checksum = crc32fast::hash(&self[4..]);
        self.put(0, &checksum.to_le_bytes());
    }
}

/// A page in memory of its own.
#[derive(Clone)]
pub struct Page(Box<PageBytes>);

impl Deref for Page {
    type Target = PageBytes;

    fn deref(&self) -> &PageBytes {
        &self.0
    }
}

impl PageMut for Page {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn shift(&mut self, from: Range<usize>, to: usize) {
        self.0.copy_within(from, to);
    }
}

impl From<&PageBytes> for Page {
    fn from(bytes: &PageBytes) -> Self {
        let mut page = Self::blank();
        page.0.copy_from_slice(bytes);
        page
    }
}

/// A page in a part of other memory.
pub struct PageCopy<'a>(&'a mut PageBytes);

impl<'a> PageCopy<'a> {
    /// The bytes are those of one page.
    pub fn of(bytes: &'a mut [u8]) -> Self {
        Self(bytes.try_into().expect("the slice has PAGE_BYTES"))
    }
}

impl Deref for PageCopy<'_> {
    type Target = PageBytes;

    fn deref(&self) -> &PageBytes {
        self.0
    }
}

impl PageMut for PageCopy<'_> {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn shift(&mut self, from: Range<usize>, to: usize) {
        self.0.copy_within(from, to);
    }
}

impl Page {
    pub fn blank() -> Self {
        let bytes = vec![0; PAGE_BYTES].into_boxed_slice();
        Self(bytes.try_into().expect("the slice has PAGE_BYTES"))
    }

    /// A page with nothing in its body.
    pub fn formatted(id: PageId, kind: u8) -> Self {
        let mut page = Self::blank();
        page.format(id, kind);
        page
    }

    pub fn bytes_mut(&mut self) -> &mut PageBytes {
        &mut self.0
    }

    pub fn set_level(&mut self, level: u8) {
        self.0[5] = level;
    }

    pub fn set_right(&mut self, number: u32) {
        self.put(24, &number.to_le_bytes());
    }

    pub fn set_first_child(&mut self, number: u32) {
        self.put(28, &number.to_le_bytes());
    }

    /// Whether a page that was read from the disk is intact, or was never written.
    pub fn is_whole(&self, id: PageId) -> bool {
        let is_sealed = self.checksum() == crc32fast::hash(&self.0[4..]) && self.id() == id;
        is_sealed || self.is_blank()
    }

    pub fn is_blank(&self) -> bool {
        self.kind() == kind::BLANK && self.0.iter().all(|it| *it == 0)
    }
}

fn u16_at(bytes: &PageBytes, at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn u32_at(bytes: &PageBytes, at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}
