//! The descriptors of this process, by the numbers of the files.
//!
//! Shared memory must not contain descriptors: one that was opened after the fork is another file
//! in another process, or none. So each process has this table. It is not in shared memory, because
//! it is static and has nothing on the heap; a fork copies it together with the descriptors.

use std::fs::File;
use std::io;
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

/// The size of the table: files whose numbers differ by a multiple of it replace each other.
const KEPT: usize = 512;

static DESCRIPTORS: [RwLock<Option<Kept>>; KEPT] = [const { RwLock::new(None) }; KEPT];

/// The number of a folder and of a file in it, among all that were ever opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileNumber {
    pub folder: u32,
    pub file: u32,
}

struct Kept {
    number: FileNumber,
    file: File,
}

impl FileNumber {
    fn place(self) -> &'static RwLock<Option<Kept>> {
        // Folders begin at different places, because each has a file 0, 1, …
        let at = self.file.wrapping_add(self.folder.wrapping_mul(97));
        &DESCRIPTORS[at as usize % KEPT]
    }

    fn latch(self) -> RwLockWriteGuard<'static, Option<Kept>> {
        let place = self.place().write();
        place.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stores the descriptor of a file that was just opened.
pub fn keep(number: FileNumber, file: File) {
    *number.latch() = Some(Kept { number, file });
}

/// Closes the descriptor of a file that is no longer used, if this process has one.
pub fn forget(number: FileNumber) {
    let mut place = number.latch();
    if place.as_ref().is_some_and(|it| it.number == number) {
        *place = None;
    }
}

/// Calls `work` with a file, which is opened if this process has no descriptor of it.
pub fn with<T>(
    number: FileNumber,
    open: impl FnOnce() -> io::Result<File>,
    work: impl FnOnce(&File) -> io::Result<T>,
) -> io::Result<T> {
    let place = number.place();
    {
        let kept = place.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = kept.as_ref().filter(|it| it.number == number) {
            return work(&kept.file);
        }
    }
    let file = open()?;
    let mut place = number.latch();
    let kept = match place.take() {
        // Another thread was faster.
        Some(kept) if kept.number == number => kept,
        _ => Kept { number, file },
    };
    work(&place.insert(kept).file)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, SeekFrom, Write};

    use super::*;

    fn file(content: &str) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content.as_bytes()).unwrap();
        file
    }

    fn content(mut file: &File) -> io::Result<String> {
        let mut text = String::new();
        file.seek(SeekFrom::Start(0))?;
        file.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn files_of_one_place_replace_each_other() {
        let number = |file: usize| FileNumber {
            folder: u32::MAX,
            file: file as u32,
        };
        let (one, other) = (number(1), number(1 + KEPT));
        keep(one, file("one"));
        let never = || unreachable!("it is kept");
        assert_eq!(with(one, never, content).unwrap(), "one");
        assert_eq!(with(other, || Ok(file("other")), content).unwrap(), "other");
        assert_eq!(with(other, never, content).unwrap(), "other");
        // The first one was replaced.
        assert_eq!(with(one, || Ok(file("again")), content).unwrap(), "again");
        forget(other);
        assert_eq!(with(one, never, content).unwrap(), "again");
        forget(one);
        let refused = with(one, || Err(io::ErrorKind::NotFound.into()), content);
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
