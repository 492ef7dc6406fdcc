//! Files for the log, made before they are needed.
//!
//! Forcing a file that grows to the disk also forces its length and its blocks, at several times the
//! price. So the log is written over what was there before: zeros, or a part of the log that is not
//! needed any more. Its records begin at other bytes of the log than they say, so they are no records.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use concurve_latch::Mutex;

use crate::classes;
use crate::error::{Fault, While};
use crate::log::file_name;
use crate::storage::{Disk, Storage};

const PREFIX: &str = "spare-";
/// Made, but maybe not whole.
const UNFINISHED: &str = "unfinished-spare";
/// Written at a time. The kernel keeps in one piece what comes in one piece, and looks at all of it
/// when a part is written: of short transactions that was a sixth of the time.
static ZEROS: [u8; 1 << 14] = [0; 1 << 14];
/// Most that are kept.
const SPARES_MAX: usize = 8;

/// Spare files, by their numbers.
pub struct Spares {
    numbers: Mutex<Vec<u64>>,
    count: AtomicUsize,
    file_bytes: u64,
}

impl Spares {
    /// Those that are there.
    pub fn find(storage: &dyn Storage, file_bytes: u64) -> Result<Self, Fault> {
        let names = storage.names().when(|| "list the log".to_owned())?;
        let number = |name: &String| name.strip_prefix(PREFIX)?.parse().ok();
        let numbers: Vec<u64> = names.iter().filter_map(number).collect();
        Ok(Self {
            count: AtomicUsize::new(numbers.len()),
            numbers: classes::log_writer().mutex(numbers),
            file_bytes,
        })
    }

    /// Whether there is none.
    pub fn is_wanted(&self) -> bool {
        self.count.load(Acquire) == 0
    }

    /// Makes one of zeros, if there is none.
    pub fn prepare(&self, storage: &dyn Storage) -> Result<(), Fault> {
        if !self.is_wanted() {
            return Ok(());
        }
        let what = || "make a spare file of the log".to_owned();
        let file = storage.open(UNFINISHED).when(what)?;
        for at in (0..self.file_bytes).step_by(ZEROS.len()) {
            file.write_at(&ZEROS, at).when(what)?;
        }
        file.sync().when(what)?;
        self.keep(storage, UNFINISHED)
    }

    /// Keeps a file that is not needed any more, or removes it.
    pub fn keep(&self, storage: &dyn Storage, name: &str) -> Result<(), Fault> {
        let what = || format!("give up the file {name} of the log");
        let mut numbers = self.numbers.lock();
        if numbers.len() >= SPARES_MAX {
            return storage.remove(name).when(what);
        }
        let number = (0..).find(|it| !numbers.contains(it)).unwrap_or_default();
        storage
            .rename(name, &format!("{PREFIX}{number}"))
            .when(what)?;
        numbers.push(number);
        self.count.fetch_add(1, AcqRel);
        Ok(())
    }

    /// A file for the log from a byte on, its name durable: a spare one, or else an empty one.
    pub fn start_file(&self, storage: &dyn Storage, start: u64) -> Result<Arc<dyn Disk>, Fault> {
        let name = file_name(start);
        let what = || format!("start the file {name} of the log");
        let mut numbers = self.numbers.lock();
        let file = if let Some(number) = numbers.pop() {
            self.count.fetch_sub(1, AcqRel);
            let spare = format!("{PREFIX}{number}");
            storage.rename(&spare, &name).when(what)?;
            storage.open(&name).when(what)?
        } else {
            let file = storage.open(&name).when(what)?;
            file.set_length(0).when(what)?;
            file
        };
        storage.sync_names().when(what)?;
        Ok(file)
    }
}
