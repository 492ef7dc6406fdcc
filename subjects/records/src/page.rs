//! Pages: the unit of the cache, of the disk and of latching.
//!
//! Header, little-endian: checksum u32 at 0 (CRC-32 of all that follows), kind u8 at 4, level u8
//! at 5, count u16 at 6, LSN u64 at 8, file u32 at 16, number u32 at 20, right u32 at 24, first
//! child u32 at 28. [`slots`](crate::slots) and [`node`](crate::node) describe the body.

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

/// The bytes of a page.
#[derive(Clone)]
pub struct Page(Box<[u8; PAGE_BYTES]>);

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

    /// Clears the page and sets its kind.
    pub fn format(&mut self, id: PageId, kind: u8) {
        self.0.fill(0);
        self.0[4] = kind;
        self.put_u32(16, id.file);
        self.put_u32(20, id.number);
    }

    pub fn bytes(&self) -> &[u8; PAGE_BYTES] {
        &self.0
    }

    pub fn bytes_mut(&mut self) -> &mut [u8; PAGE_BYTES] {
        &mut self.0
    }

    pub fn kind(&self) -> u8 {
        self.0[4]
    }

    /// Height of a node above the leaves.
    pub fn level(&self) -> u8 {
        self.0[5]
    }

    pub fn set_level(&mut self, level: u8) {
        self.0[5] = level;
    }

    /// The number of entries of a node.
    pub fn count(&self) -> usize {
        usize::from(self.u16(6))
    }

    pub fn set_count(&mut self, count: usize) {
        self.0[6..8].copy_from_slice(&(count as u16).to_le_bytes());
    }

    /// The end of the log record that changed the page last.
    pub fn lsn(&self) -> u64 {
        u64::from_le_bytes(self.0[8..16].try_into().expect("eight bytes"))
    }

    pub fn set_lsn(&mut self, lsn: u64) {
        self.0[8..16].copy_from_slice(&lsn.to_le_bytes());
    }

    pub fn id(&self) -> PageId {
        PageId {
            file: self.u32(16),
            number: self.u32(20),
        }
    }

    /// The next leaf, 0 for none.
    pub fn right(&self) -> u32 {
        self.u32(24)
    }

    pub fn set_right(&mut self, number: u32) {
        self.put_u32(24, number);
    }

    /// The child of an inner node with the entries less than its first one.
    pub fn first_child(&self) -> u32 {
        self.u32(28)
    }

    pub fn set_first_child(&mut self, number: u32) {
        self.put_u32(28, number);
    }

    /// Sets the checksum, before the page is written to the disk.
    pub fn seal(&mut self) {
        let checksum = crc32fast::hash(&self.0[4..]);
        self.put_u32(0, checksum);
    }

    /// The checksum that [`Page::seal`] has set.
    pub fn checksum(&self) -> u32 {
        self.u32(0)
    }

    /// Whether a page that was read from the disk is intact, or was never written.
    pub fn is_whole(&self, id: PageId) -> bool {
        let is_sealed = self.u32(0) == crc32fast::hash(&self.0[4..]) && self.id() == id;
        is_sealed || self.is_blank()
    }

    pub fn is_blank(&self) -> bool {
        self.kind() == kind::BLANK && self.0.iter().all(|it| *it == 0)
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.0[at..at + 2].try_into().expect("two bytes"))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    fn put_u32(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
}
