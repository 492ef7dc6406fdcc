//! The file of each folder that this process writes through memory.
//!
//! As with descriptors, each process has this table for itself. Of a folder, only the newest file of the log
//! is written in this way: so one place for each is enough. Each thread keeps what it used last: all of them
//! append to the same file, and would otherwise pass on the line of its place with each append.
//!
//! What is kept counts its users on the heap, which processes may share. A fork copies the table and counts
//! nothing, so a child leaves alone what it has of its parent, and maps the file again.

use std::cell::RefCell;
use std::io;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use concurve_files::Mapped;

use crate::storage::descriptors::FileNumber;

/// The size of the table: folders whose numbers differ by a multiple of it replace each other.
const KEPT: usize = 64;

static MAPPED: [Mutex<Option<Kept>>; KEPT] = [const { Mutex::new(None) }; KEPT];

thread_local! {
    /// The file that this thread used last. It stays mapped until the thread uses another one, or ends.
    static LAST: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

#[derive(Clone)]
struct Kept {
    number: FileNumber,
    /// `None`: it cannot be mapped.
    memory: Option<Arc<Mapped>>,
    /// That of the process that mapped it ([`concurve_latch::forks`]).
    forks: u32,
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.forks != concurve_latch::forks() {
            mem::forget(self.memory.take());
        }
    }
}

impl Kept {
    fn new(number: FileNumber, memory: Option<Arc<Mapped>>) -> Self {
        let forks = concurve_latch::forks();
        Self {
            number,
            memory,
            forks,
        }
    }

    /// Is it this file, and mapped by this very process?
    fn is(&self, number: FileNumber) -> bool {
        self.number == number && self.forks == concurve_latch::forks()
    }

    fn place(number: FileNumber) -> MutexGuard<'static, Option<Self>> {
        let place = MAPPED[number.folder as usize % KEPT].lock();
        place.unwrap_or_else(PoisonError::into_inner)
    }

    /// What this process keeps of a file, which `map` maps if nobody has done so.
    fn find(number: FileNumber, map: impl FnOnce() -> io::Result<Mapped>) -> Self {
        let mut place = Self::place(number);
        if let Some(kept) = place.as_ref().filter(|it| it.is(number)) {
            return kept.clone();
        }
        let memory = map().ok().map(Arc::new);
        place.insert(Self::new(number, memory)).clone()
    }

    fn put(&self, bytes: &[u8], at: u64) -> bool {
        let memory = self.memory.as_ref();
        memory.is_some_and(|it| usize::try_from(at).is_ok_and(|at| it.put(at, bytes)))
    }
}

/// Puts bytes into a file, which `map` maps if this process has not done so. False if it cannot be mapped, or
/// does not have these bytes.
pub fn put(
    number: FileNumber,
    map: impl FnOnce() -> io::Result<Mapped>,
    bytes: &[u8],
    at: u64,
) -> bool {
    LAST.with_borrow_mut(|last| {
        let kept = match last {
            Some(kept) if kept.is(number) => kept,
            _ => last.insert(Kept::find(number, map)),
        };
        kept.put(bytes, at)
    })
}

/// Has the kernel ready for bytes of the file into which this thread has put some last.
pub fn prepare(number: FileNumber, at: u64, bytes: u64) {
    LAST.with_borrow(|last| {
        let memory = last.as_ref().filter(|it| it.is(number));
        let memory = memory.and_then(|it| it.memory.as_ref());
        if let (Some(memory), Ok(at), Ok(bytes)) = (memory, at.try_into(), bytes.try_into()) {
            memory.prepare(at, bytes);
        }
    });
}

/// Unmaps a file that is no longer used, if it is mapped in this process: at once for this thread, and for
/// others with the next file that they use.
pub fn forget(number: FileNumber) {
    // A thread that ends has none any more.
    let _ = LAST.try_with(|last| take(&mut last.borrow_mut(), number));
    take(&mut Kept::place(number), number);
}

fn take(kept: &mut Option<Kept>, number: FileNumber) {
    if kept.as_ref().is_some_and(|it| it.is(number)) {
        *kept = None;
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    use super::*;

    fn number(file: u32) -> FileNumber {
        let folder = u32::MAX;
        FileNumber { folder, file }
    }

    fn begin(file: &File) -> [u8; 4] {
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn what_a_fork_has_copied_is_left_alone_and_mapped_again() {
        let file = tempfile::tempfile().unwrap();
        (&file).write_all(&[0; 4096]).unwrap();
        let number = FileNumber {
            folder: u32::MAX - 1,
            file: 1,
        };
        let memory = Arc::new(Mapped::whole(&file).unwrap());
        // As a child finds the table of its parent: nobody has counted these.
        let copied = || {
            let mut kept = Kept::new(number, Some(Arc::clone(&memory)));
            kept.forks = kept.forks.wrapping_sub(1);
            kept
        };
        *Kept::place(number) = Some(copied());
        LAST.set(Some(copied()));
        let users = Arc::strong_count(&memory);
        let mut is_mapped = false;
        let map = || {
            is_mapped = true;
            Mapped::whole(&file)
        };
        assert!(put(number, map, b"x", 0));
        assert!(is_mapped);
        assert_eq!(
            Arc::strong_count(&memory),
            users,
            "the copies were not dropped"
        );
        assert_eq!(&begin(&file), b"x\0\0\0");
        forget(number);
    }

    #[test]
    fn all_threads_put_into_the_file_that_one_has_mapped() {
        let mut files = [tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap()];
        files
            .iter_mut()
            .for_each(|it| it.write_all(&[0; 4096]).unwrap());
        let [one, other] = &files;
        let never = || unreachable!("it is mapped");
        assert!(put(number(1), || Mapped::whole(one), b"a", 0));
        assert!(put(number(1), never, b"b", 1));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(put(number(1), never, b"c", 2));
                // The log goes on in another file.
                assert!(put(number(2), || Mapped::whole(other), b"a", 0));
            });
        });
        assert_eq!(&begin(one), b"abc\0");
        assert!(put(number(2), never, b"b", 1));
        assert_eq!(&begin(other), b"ab\0\0");
        // A file that cannot be mapped is asked for once.
        let refused = || Err(io::ErrorKind::OutOfMemory.into());
        assert!(!put(number(3), refused, b"a", 0));
        assert!(!put(number(3), never, b"a", 0));
        forget(number(3));
        assert!(put(number(3), || Mapped::whole(one), b"d", 3));
        assert_eq!(&begin(one), b"abcd");
        forget(number(3));
    }
}
