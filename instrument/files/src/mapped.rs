//! A file that is written through memory.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::Release;
use std::sync::atomic::{AtomicU8, AtomicU64};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// Bytes of a block, as [`MetadataExt::blocks`] counts them.
const BLOCK_BYTES: u64 = 512;

const WORD: usize = size_of::<u64>();

/// A page of the kernel, or a part of one.
const PAGE_BYTES: usize = 4096;

/// The bytes that a file had when it was mapped. What is put there is in the file at once, for all
/// processes, and stays if this one is killed; it is on the disk after the file was forced to it.
///
/// If the disk fails, or somebody cuts the file, the kernel ends the process at the next [`Mapped::put`]
/// (SIGBUS). A full disk does so only where a file system writes to other blocks than before.
#[derive(Debug)]
pub struct Mapped {
    begin: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping belongs to the whole process.
unsafe impl Send for Mapped {}
// SAFETY: the bytes are written by atomic stores alone, and not read.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// Maps all of a file, which is open for reading and writing.
    ///
    /// # Errors
    /// If the file is empty or has holes: then a full disk would be noticed too late. If its file system
    /// does not map files, or there is no address space.
    pub fn whole(file: &File) -> io::Result<Self> {
        let status = file.metadata()?;
        // The blocks of extended attributes and of the map of blocks count, too: they may make up for a hole.
        // Where a file system does not tell its holes, the first one is the end.
        let has_holes = status.blocks().saturating_mul(BLOCK_BYTES) < status.len()
            || u64::try_from(nix::unistd::lseek(file, 0, nix::unistd::Whence::SeekHole)?).ok()
                != Some(status.len());
        let bytes = usize::try_from(status.len()).unwrap_or(0);
        if bytes == 0 || has_holes {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, placed by the kernel, to which no reference is ever made.
        let mapped = unsafe {
            mmap(
                ptr::null_mut(),
                bytes,
                protection,
                MapFlags::SHARED,
                file,
                0,
            )
        };
        let begin = NonNull::new(mapped?.cast()).expect("the kernel maps nothing at address 0");
        Ok(Self { begin, bytes })
    }

    /// Puts bytes from a place on, the first ones first: if the process is killed, all before some byte are
    /// in the file, and none after it. False if the file does not have all of them: then nothing is put.
    ///
    /// If several threads put bytes to the same place at once, some of each may be there afterwards.
    pub fn put(&self, at: usize, bytes: &[u8]) -> bool {
        let end = at.checked_add(bytes.len());
        if end.is_none_or(|end| end > self.bytes) {
            return false;
        }
        // `memcpy` may copy the end first. Each of these stores comes after all before it.
        let to_word = (WORD - at % WORD) % WORD;
        let (head, rest) = bytes.split_at(to_word.min(bytes.len()));
        let (words, tail) = rest.as_chunks::<WORD>();
        // SAFETY: all bytes are in the mapping, which begins at a page, so after `head` words are aligned. This
        // process uses the mapping for atomic stores alone.
        unsafe {
            let mut to = self.begin.as_ptr().add(at);
            for byte in head {
                AtomicU8::from_ptr(to).store(*byte, Release);
                to = to.add(1);
            }
            for word in words {
                AtomicU64::from_ptr(to.cast()).store(u64::from_ne_bytes(*word), Release);
                to = to.add(WORD);
            }
            for byte in tail {
                AtomicU8::from_ptr(to).store(*byte, Release);
                to = to.add(1);
            }
        }
        true
    }

    /// Has the kernel ready for [`Mapped::put`] of some bytes from a place on, which then need not wait for it:
    /// it notes for each page of a mapping that it is written, at the first write to it after the page was on
    /// the disk. Does nothing where the kernel cannot do so (before Linux 5.14), or after the end.
    pub fn prepare(&self, at: usize, bytes: usize) {
        let begin = at.min(self.bytes) & !(PAGE_BYTES - 1);
        let end = at.saturating_add(bytes).min(self.bytes);
        if begin >= end {
            return;
        }
        // SAFETY: the range is in the mapping, and no byte of it changes.
        let prepared = unsafe {
            let from = self.begin.as_ptr().add(begin).cast::<c_void>();
            madvise(from, end - begin, Advice::LinuxPopulateWrite)
        };
        // Whatever it was, who puts bytes there waits or meets it then.
        let _ = prepared;
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it is the mapping that was made, and nobody uses it any more.
        let unmapped = unsafe { munmap(self.begin.as_ptr().cast::<c_void>(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;

    use super::*;

    fn content(file: &File) -> Vec<u8> {
        let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn what_is_put_is_in_the_file_and_stays_when_it_is_unmapped() {
        let mut file = tempfile::tempfile().unwrap();
        let mut model = vec![b'-'; 10_000];
        file.write_all(&model).unwrap();
        let mapped = Mapped::whole(&file).unwrap();
        for (at, text) in [
            (0, &b"first"[..]),
            (4090, b"over two pages"),
            (9_996, b"last"),
        ] {
            assert!(mapped.put(at, text));
            model[at..at + text.len()].copy_from_slice(text);
            assert_eq!(content(&file), model);
        }
        // The file can be written in both ways.
        file.write_all_at(b"written", 100).unwrap();
        model[100..107].copy_from_slice(b"written");
        assert!(mapped.put(107, b" and put"));
        model[107..115].copy_from_slice(b" and put");
        drop(mapped);
        assert_eq!(content(&file), model);
    }

    #[test]
    fn bytes_are_put_at_any_place() {
        let mut file = tempfile::tempfile().unwrap();
        let mut model = vec![b'-'; 8_192];
        file.write_all(&model).unwrap();
        let mapped = Mapped::whole(&file).unwrap();
        for at in 4_080..4_100 {
            for length in 0..40 {
                let part: Vec<u8> = (0..length)
                    .map(|it| (at * 7 + it * 3 + length) as u8)
                    .collect();
                assert!(mapped.put(at, &part));
                model[at..at + length].copy_from_slice(&part);
                assert_eq!(content(&file), model, "{length} bytes at {at}");
            }
        }
    }

    /// What else takes blocks may be as much as the hole.
    #[test]
    fn a_hole_that_other_blocks_make_up_for_is_seen() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[b'-'; 1 << 16], 0).unwrap();
        file.sync_all().unwrap();
        assert!(Mapped::whole(&file).is_ok());
        file.set_len((1 << 16) + 4096).unwrap();
        let value = [b'x'; 3000];
        // Where the file system has no extended attributes, less is tried.
        // SAFETY: the name ends with a zero, and the value has so many bytes.
        let _ = unsafe {
            nix::libc::fsetxattr(
                file.as_raw_fd(),
                c"user.concurve".as_ptr(),
                value.as_ptr().cast(),
                value.len(),
                0,
            )
        };
        file.sync_all().unwrap();
        assert!(Mapped::whole(&file).is_err());
    }

    #[test]
    fn what_is_prepared_is_as_it_was() {
        let mut file = tempfile::tempfile().unwrap();
        let model: Vec<u8> = (0..10_000_u32).map(|it| it as u8).collect();
        file.write_all(&model).unwrap();
        let mapped = Mapped::whole(&file).unwrap();
        for at in [0, 1, 4_096, 5_000, 9_999, 10_000, 20_000, usize::MAX] {
            for bytes in [0, 1, 4_096, 100_000, usize::MAX] {
                mapped.prepare(at, bytes);
            }
        }
        assert_eq!(content(&file), model);
    }

    #[test]
    fn nothing_is_put_after_the_end() {
        let mut file = tempfile::tempfile().unwrap();
        let mut model = vec![b'-'; 10_000];
        file.write_all(&model).unwrap();
        let mapped = Mapped::whole(&file).unwrap();
        for at in [9_997, 10_000, 12_288, usize::MAX] {
            assert!(!mapped.put(at, b"four"));
        }
        // Bytes that it got afterwards are not mapped.
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(b"more").unwrap();
        assert!(!mapped.put(9_998, b"four"));
        assert!(mapped.put(9_996, b"four"));
        model[9_996..].copy_from_slice(b"four");
        model.extend(b"more");
        assert_eq!(content(&file), model);
    }

    #[test]
    fn files_without_bytes_or_with_holes_are_not_mapped() {
        let file = tempfile::tempfile().unwrap();
        assert!(Mapped::whole(&file).is_err());
        file.set_len(1 << 20).unwrap();
        file.write_all_at(b"the rest is a hole", 0).unwrap();
        assert!(Mapped::whole(&file).is_err());
    }
}
