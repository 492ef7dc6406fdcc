//! The double write buffer: the file `pages.double`, which has a copy of each page of the batch that
//! was written last.
//!
//! It begins with a header, which has a page of its own: `magic 16 bytes, count: u32`, then `file: u32,
//! number: u32, checksum: u32` for each copy, and a CRC-32 of that. The copies follow one after another.
//! Only a page of that batch can be torn in its place; the copies of larger batches before it, which are
//! still in the file, are older than their pages.
//!
//! Earlier formats are read: up to 64 copies, with the header behind the places of all of them (2), or
//! without a header (1).

use std::sync::Arc;

use crate::error::Fault;
use crate::page::{PAGE_BYTES, Page, PageBytes, PageHeader, PageId};
use crate::storage::{Disk, Storage};

const NAME: &str = "pages.double";
const MAGIC: &[u8; 16] = b"concurve batch3\n";
const MAGIC_OF_FORMAT_2: &[u8; 16] = b"concurve batch1\n";
/// Pages that are written together, at most: each batch costs a force of the log, of this file, and of
/// the files of its pages.
pub const BATCH: usize = 512;
/// In formats 1 and 2.
const BATCH_BEFORE: usize = 64;
/// Where the header is in format 2.
const HEADER_AT_BEFORE: u64 = (BATCH_BEFORE * PAGE_BYTES) as u64;
const HEADER_BYTES_MAX: usize = 16 + 4 + 12 * BATCH + 4;
const _: () = assert!(HEADER_BYTES_MAX <= PAGE_BYTES, "the header has one page");

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

    /// Writes a batch durably: the bytes of a page, which become the header, and then sealed copies. Only a
    /// start reads them, after a crash: so they need not be in the cache of the kernel.
    pub fn write(&self, bytes: &mut [u8]) -> Result<(), Fault> {
        let what = || format!("write the file {NAME}");
        let (header, copies) = bytes.split_at_mut(PAGE_BYTES);
        let copies: &[PageBytes] = copies.as_chunks().0;
        let listed: Vec<Listed> = copies.iter().map(|it| (it.id(), it.checksum())).collect();
        let encoded = encode(&listed);
        header[..encoded.len()].copy_from_slice(&encoded);
        header[encoded.len()..].fill(0);
        let written = self.disk.write_past_cache(bytes, 0);
        written.map_err(Fault::io(what))?;
        self.disk.sync().map_err(Fault::io(what))
    }

    /// The whole copies of the last batch.
    pub fn read(&self) -> Result<Vec<Page>, Fault> {
        let header = self.header_at(0)?;
        if !header.starts_with(MAGIC) {
            return self.read_before();
        }
        let listed = decode(MAGIC, BATCH, &header).unwrap_or_default();
        let mut pages = Vec::new();
        for (index, listed) in listed.iter().enumerate() {
            let copy = self.copy_at(((index + 1) * PAGE_BYTES) as u64)?;
            pages.extend(copy.filter(|copy| (copy.id(), copy.checksum()) == *listed));
        }
        Ok(pages)
    }

    /// The whole copies of the last batch, in format 1 or 2.
    fn read_before(&self) -> Result<Vec<Page>, Fault> {
        let what = || format!("read the file {NAME}");
        let length = self.disk.length().map_err(Fault::io(what))?;
        let header = self.header_at(HEADER_AT_BEFORE)?;
        let listed = decode(MAGIC_OF_FORMAT_2, BATCH_BEFORE, &header);
        let mut pages: Vec<Page> = Vec::new();
        for index in 0..BATCH_BEFORE {
            let Some(copy) = self.copy_at((index * PAGE_BYTES) as u64)? else {
                continue;
            };
            let id = copy.id();
            let is_of_batch = match &listed {
                Some(listed) => listed.get(index) == Some(&(id, copy.checksum())),
                // The first copy of a page is the newest.
                None => length <= HEADER_AT_BEFORE && pages.iter().all(|it| it.id() != id),
            };
            if is_of_batch {
                pages.push(copy);
            }
        }
        Ok(pages)
    }

    fn header_at(&self, at: u64) -> Result<Vec<u8>, Fault> {
        let mut header = vec![0; HEADER_BYTES_MAX];
        let read = self.disk.read_at(&mut header, at);
        let read = read.map_err(Fault::io(|| format!("read the file {NAME}")))?;
        header.truncate(read);
        Ok(header)
    }

    /// The copy at a byte, if it is whole.
    fn copy_at(&self, at: u64) -> Result<Option<Page>, Fault> {
        let mut copy = Page::blank();
        let read = self.disk.read_at(copy.bytes_mut(), at);
        let read = read.map_err(Fault::io(|| format!("read the file {NAME}")))?;
        let is_whole = read == PAGE_BYTES && !copy.is_blank() && copy.is_whole(copy.id());
        Ok(is_whole.then_some(copy))
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

fn decode(magic: &[u8; 16], most: usize, bytes: &[u8]) -> Option<Vec<Listed>> {
    let number = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if !bytes.starts_with(magic) {
        return None;
    }
    let count = number(16)? as usize;
    let end = 20 + 12 * count.min(most);
    if count > most || crc32fast::hash(bytes.get(..end)?) != number(end)? {
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
            garbage in proptest::collection::vec(any::<u8>(), 0..9000),
            at: usize, flip in 1..=255_u8,
        ) {
            let listed: Vec<Listed> = listed
                .into_iter()
                .map(|(file, number, checksum)| (PageId { file, number }, checksum))
                .collect();
            let mut bytes = encode(&listed);
            prop_assert_eq!(decode(MAGIC, BATCH, &bytes), Some(listed));
            prop_assert_eq!(decode(MAGIC, BATCH, &bytes[..at % bytes.len()]), None);
            let at = at % bytes.len();
            bytes[at] ^= flip;
            prop_assert_eq!(decode(MAGIC, BATCH, &bytes), None);
            let _ = decode(MAGIC, BATCH, &[&MAGIC[..], &garbage].concat());
        }
    }
}
