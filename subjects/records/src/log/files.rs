//! The files of the log: their names, and spare files that are made before they are needed.
//!
//! To force a growing file to the disk also forces its length and its block map, which costs
//! several times as much. So the log overwrites a spare file: of zeros, or a part of the log that
//! is no longer needed. The records of such a part have LSNs that do not fit their new place, so
//! they are ignored.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use concurve_latch::Mutex;

use crate::classes;
use crate::error::Fault;
use crate::storage::{Disk, Storage};

const PREFIX: &str = "spare-";
/// A spare file that may be incomplete.
const UNFINISHED: &str = "unfinished-spare";
/// Written at a time. The kernel caches a large write in one folio, and processes all of it when a
/// part is overwritten: with short transactions that took a sixth of the time.
static ZEROS: [u8; 1 << 14] = [0; 1 << 14];
/// So many spare files there may be beside those that the log fills between two checkpoints: a checkpoint frees
/// these, and one that was removed would have to be made again, which takes as long as to write the log. The log
/// goes on during a checkpoint.
const SPARES_MORE: u64 = 4;
/// With fewer, another one is made: the log may need the next one before that is done.
const SPARES_MIN: usize = 2;

/// The name of the file that begins at a byte of the log.
pub fn file_name(start: u64) -> String {
    format!("log-{start:016x}")
}

/// Where the file of this name begins.
pub fn file_start(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix("log-")?, 16).ok()
}

/// The spare files, by their numbers.
pub struct Spares {
    numbers: Mutex<Vec<u64>>,
    count: AtomicUsize,
    file_bytes: u64,
    /// The largest number of spare files.
    most: usize,
}

impl Spares {
    /// The spare files in the storage. Files have `file_bytes`, and there are at most `files` between two checkpoints.
    pub fn find(storage: &dyn Storage, file_bytes: u64, files: u64) -> Result<Self, Fault> {
        let names = storage
            .names()
            .map_err(Fault::io(|| "list the log".to_owned()))?;
        let number = |name: &String| name.strip_prefix(PREFIX)?.parse().ok();
        let numbers: Vec<u64> = names.iter().filter_map(number).collect();
        Ok(Self {
            count: AtomicUsize::new(numbers.len()),
            numbers: classes::log_writer().mutex(numbers),
            file_bytes,
            most: usize::try_from(files.saturating_add(SPARES_MORE)).unwrap_or(usize::MAX),
        })
    }

    /// Whether there are too few spare files.
    pub fn is_wanted(&self) -> bool {
        self.count.load(Acquire) < SPARES_MIN
    }

    /// Makes a spare file of zeros, if there are too few.
    pub fn prepare(&self, storage: &dyn Storage) -> Result<(), Fault> {
        if !self.is_wanted() {
            return Ok(());
        }
        let what = || "make a spare file of the log".to_owned();
        let file = storage.open(UNFINISHED).map_err(Fault::io(what))?;
        for at in (0..self.file_bytes).step_by(ZEROS.len()) {
            file.write_at(&ZEROS, at).map_err(Fault::io(what))?;
        }
        file.sync().map_err(Fault::io(what))?;
        self.keep(storage, UNFINISHED)
    }

    /// Makes a file that is no longer needed a spare one, or removes it.
    pub fn keep(&self, storage: &dyn Storage, name: &str) -> Result<(), Fault> {
        let what = || format!("give up the file {name} of the log");
        let mut numbers = self.numbers.lock();
        if numbers.len() >= self.most {
            return storage.remove(name).map_err(Fault::io(what));
        }
        let number = (0..).find(|it| !numbers.contains(it)).unwrap_or_default();
        storage
            .rename(name, &format!("{PREFIX}{number}"))
            .map_err(Fault::io(what))?;
        numbers.push(number);
        self.count.fetch_add(1, AcqRel);
        Ok(())
    }

    /// A file for the log from a byte on: a spare one, or else a new one. Neither its name nor its length
    /// need be on the disk before [`name_durably`].
    pub fn start_file(&self, storage: &dyn Storage, start: u64) -> Result<Arc<dyn Disk>, Fault> {
        let name = file_name(start);
        let what = || format!("start the file {name} of the log");
        let mut numbers = self.numbers.lock();
        if let Some(number) = numbers.pop() {
            self.count.fetch_sub(1, AcqRel);
            let spare = format!("{PREFIX}{number}");
            storage.rename(&spare, &name).map_err(Fault::io(what))?;
            return storage.open(&name).map_err(Fault::io(what));
        }
        let file = storage.open(&name).map_err(Fault::io(what))?;
        file.set_length(0).map_err(Fault::io(what))?;
        file.set_length(self.file_bytes).map_err(Fault::io(what))?;
        Ok(file)
    }
}

/// Forces a file of the log to the disk, with its name and its length, which it returns: a process that was
/// killed may have left these in the kernel.
pub fn name_durably(storage: &dyn Storage, file: &dyn Disk, start: u64) -> Result<u64, Fault> {
    let what = || format!("start the file {} of the log", file_name(start));
    // Sessions may make it longer meanwhile: what they add need not be on the disk.
    let length = file.length().map_err(Fault::io(what))?;
    file.sync().map_err(Fault::io(what))?;
    storage.sync_names().map_err(Fault::io(what))?;
    Ok(length)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::storage::Folder;

    /// A file that a session makes longer as soon as it was forced to the disk.
    struct Growing(AtomicU64);

    impl Disk for Growing {
        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
            Ok(0)
        }

        fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
            Ok(())
        }

        fn sync(&self) -> io::Result<()> {
            self.0.fetch_add(1, AcqRel);
            Ok(())
        }

        fn length(&self) -> io::Result<u64> {
            Ok(self.0.load(Acquire))
        }

        fn set_length(&self, _: u64) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_length_is_noted_only_if_it_is_on_the_disk() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let file = Growing(AtomicU64::new(5));
        assert_eq!(name_durably(&folder, &file, 0).unwrap(), 5);
    }
}
