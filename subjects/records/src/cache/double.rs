//! The double write buffer: the file `pages.double`, which has a copy of each page of the batch that
//! was written last.
//!
//! The copies stand one after another; behind the places of a full batch a header says which they are:
//! `magic 16 bytes, count: u32`, then `file: u32, number: u32, checksum: u32` for each copy, and a CRC-32
//! of that. Only a page of that batch can be torn in its place; the copies of larger batches before it,
//! which are still in the file, are older than their pages.

use std::sync::Arc;

use crate::error::Fault;
use crate::page::{PAGE_BYTES, Page, PageHeader, PageId};
use crate::storage::{Disk, Storage};

const NAME: &str = "pages.double";
const MAGIC: &[u8; 16] = b"concurve batch1\n";
/// Pages that are written together.
pub const BATCH: usize = 64;
/// Where the header is.
const HEADER_AT: u64 = (BATCH * PAGE_BYTES) as u64;
const HEADER_BYTES_MAX: usize = 16 + 4 + 12 * BATCH + 4;

/// A page, and the checksum of its copy.
type Listed = (PageId, u32);

pub struct DoubleWrite {
    disk: Arc<dyn Disk>,
}

impl DoubleWrite {
    pub fn open(storage: &dyn Storage) -> Result<Self, Fault> {
        let opened = storage.open(NAME);
        let disk = opened.map_err(Fault::io(|| format!("open the file {NAME}")))?;
        Ok(Self { disk })
    }

    /// Writes the copies of a batch durably.
    pub fn write<'a>(&self, pages: impl Iterator<Item = &'a Page>) -> Result<(), Fault> {
        let what = || format!("write the file {NAME}");
        let (mut copies, mut listed) = (Vec::new(), Vec::new());
        for page in pages {
            copies.extend_from_slice(page.bytes());
            listed.push((page.id(), page.checksum()));
        }
        let written = self.disk.write_at(&copies, 0);
        let written = written.and_then(|()| self.disk.write_at(&encode(&listed), HEADER_AT));
        written.map_err(Fault::io(what))?;
        self.disk.sync().map_err(Fault::io(what))
    }

    /// The whole copies of the last batch.
    pub fn read(&self) -> Result<Vec<Page>, Fault> {
        let what = || format!("read the file {NAME}");
        let length = self.disk.length().map_err(Fault::io(what))?;
        let mut header = vec![0; HEADER_BYTES_MAX];
        let read = self.disk.read_at(&mut header, HEADER_AT);
        let read = read.map_err(Fault::io(what))?;
        let listed = decode(&header[..read]);
        // Format 1 had no header.
        let is_of_format_1 = length <= HEADER_AT;
        let mut pages: Vec<Page> = Vec::new();
        for index in 0..BATCH {
            let mut copy = Page::blank();
            let at = (index * PAGE_BYTES) as u64;
            let read = self.disk.read_at(copy.bytes_mut(), at);
            let read = read.map_err(Fault::io(what))?;
            let id = copy.id();
            if read < PAGE_BYTES || copy.is_blank() || !copy.is_whole(id) {
                continue;
            }
            let is_of_batch = match &listed {
                Some(listed) => listed.get(index) == Some(&(id, copy.checksum())),
                // The first copy of a page is the newest.
                None => is_of_format_1 && pages.iter().all(|it| it.id() != id),
            };
            if is_of_batch {
                pages.push(copy);
            }
        }
        Ok(pages)
    }
}

fn encode(listed: &[Listed]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend((listed.len() as u32).to_le_bytes());
    for (id, checksum) in listed {
        for number in [id.file, id.number, *checksum] {
            out.extend(number.to_le_bytes());
        }
    }
    out.extend(crc32fast::hash(&out).to_le_bytes());
    out
}

fn decode(bytes: &[u8]) -> Option<Vec<Listed>> {
    let number = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if !bytes.starts_with(MAGIC) {
        return None;
    }
    let count = number(16)? as usize;
    let end = 20 + 12 * count.min(BATCH);
    if count > BATCH || crc32fast::hash(bytes.get(..end)?) != number(end)? {
        return None;
    }
    let listed = (0..count).map(|index| {
        let at = 20 + 12 * index;
        let (file, page) = (number(at)?, number(at + 4)?);
        let id = PageId { file, number: page };
        Some((id, number(at + 8)?))
    });
    listed.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_header_is_read_back_and_a_damaged_one_is_not(
            listed in proptest::collection::vec((any::<u32>(), any::<u32>(), any::<u32>()), 0..=BATCH),
            garbage in proptest::collection::vec(any::<u8>(), 0..900),
            at: usize, flip in 1..=255_u8,
        ) {
            let listed: Vec<Listed> = listed
                .into_iter()
                .map(|(file, number, checksum)| (PageId { file, number }, checksum))
                .collect();
            let mut bytes = encode(&listed);
            prop_assert_eq!(decode(&bytes), Some(listed));
            prop_assert_eq!(decode(&bytes[..at % bytes.len()]), None);
            let at = at % bytes.len();
            bytes[at] ^= flip;
            prop_assert_eq!(decode(&bytes), None);
            let _ = decode(&[&MAGIC[..], &garbage].concat());
        }
    }
}
