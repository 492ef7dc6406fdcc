//! What the engine asks of the machine: files, and the time. A folder and the machine's clock, or in
//! tests a simulated disk that fails and loses power, with a simulated clock.

mod descriptors;
mod folder;
mod mapped;

use std::io;
use std::sync::Arc;
use std::time::Duration;

pub use folder::{Folder, boot};

/// [`Disk::write_past_cache`] gains where bytes begin and end at multiples of this.
pub const DIRECT_BYTES: usize = 4096;

/// A set of named files, and a clock.
pub trait Storage: Send + Sync + 'static {
    /// Opens a file, and creates an empty one if there is none.
    fn open(&self, name: &str) -> io::Result<Arc<dyn Disk>>;
    /// Renames a file, and replaces one that has the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// The names of all files.
    fn names(&self) -> io::Result<Vec<String>>;
    /// Makes the names durable.
    fn sync_names(&self) -> io::Result<()>;
    /// How many bytes may still be written.
    fn free_bytes(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }
    /// The same number as long as nothing that was written can be lost, because the machine has run
    /// since; 0 if that is not known.
    fn boot(&self) -> u64;
    /// The time since some moment, the same in all processes that share the storage.
    fn now(&self) -> Duration;
}

/// A file on the disk. Writes are durable after [`Disk::sync`].
pub trait Disk: Send + Sync + 'static {
    /// Reads from a byte on until the buffer is full or the file ends; returns how much it read.
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize>;
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;
    /// The same for what is not to be read soon: the kernel need not keep it in memory, if the bytes begin and
    /// end where [`DIRECT_BYTES`] do, in memory and in the file. By one caller at a time, and while nobody else
    /// reads or writes this file.
    fn write_past_cache(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_at(bytes, at)
    }
    /// Writes over bytes that the file has, through memory that is mapped to it and without a call of the
    /// kernel: the same as [`Disk::write_at`], also if this process is killed afterwards. Of one file at a
    /// time, and by one caller at a time. False if that is not possible: then nothing is written.
    fn put(&self, bytes: &[u8], at: u64) -> bool {
        let _ = (bytes, at);
        false
    }
    /// Has the kernel ready for [`Disk::put`] of some bytes from a byte on, by a caller who may wait. Only to
    /// gain time: it may do nothing.
    fn prepare_put(&self, at: u64, bytes: u64) {
        let _ = (at, bytes);
    }
    fn sync(&self) -> io::Result<()>;
    fn length(&self) -> io::Result<u64>;
    fn set_length(&self, length: u64) -> io::Result<()>;
}
