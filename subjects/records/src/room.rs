//! Whether the machine has room for what a client asks for: a transaction's changes and locks are kept in
//! memory until it ends, and its records go to the disk twice, as data and in the log.
//!
//! Memory that is exhausted ends the engine for all clients, so whoever wants more than there is is refused
//! before.

use std::sync::OnceLock;

use crate::changes::Changes;
use crate::held::Held;
use crate::session::{FileHandle, Session};
use crate::status::Status;

/// How many bytes of memory are left, if the program says so.
static MEMORY_LEFT: OnceLock<fn() -> u64> = OnceLock::new();

/// Memory is looked at after so many more changes and locks.
const LOOK_EVERY: usize = 1024;

/// So much memory must be left for everybody else.
const SPARE_BYTES: u64 = 4 << 20;

/// About what a lock takes, in the session and in the table of locks.
const LOCK_BYTES: u64 = 256;

/// From now on transactions are refused, with [`Status::NoMemory`], what would take more memory than `left`
/// says. To be called once, before engines are forked.
pub fn limit_memory(left: fn() -> u64) {
    let _ = MEMORY_LEFT.set(left);
}

fn memory_left() -> u64 {
    MEMORY_LEFT.get().map_or(u64::MAX, |left| left())
}

/// Refuses what would keep so many more bytes, if the memory does not hold them.
pub fn check_memory_for(bytes: u64) -> Result<(), Status> {
    match memory_left() < bytes.saturating_add(SPARE_BYTES) {
        true => Err(Status::NoMemory),
        false => Ok(()),
    }
}

impl Held {
    /// Refuses the next operation if the memory might not hold what the session keeps until its transaction
    /// ends. Looks now and then: a list that is full doubles, and is copied.
    pub fn check_memory(&mut self) -> Result<(), Status> {
        let locks = self.transaction.locks.len() + self.kept.len();
        let kept = self.transaction.changes.len() + locks;
        if kept < self.looked_at {
            self.looked_at = kept; // a new transaction
        }
        if kept < self.looked_at + LOOK_EVERY {
            return Ok(());
        }
        let more = 2 * (self.transaction.changes.memory_bytes() + locks as u64 * LOCK_BYTES);
        check_memory_for(more)?;
        self.looked_at = kept;
        Ok(())
    }
}

impl Session {
    /// Refuses a transaction that inserts so many records, if the disk or the memory cannot hold them: before
    /// it has taken its time.
    ///
    /// # Errors
    /// [`Status::DiskFull`], [`Status::NoMemory`], or [`Status::FileNotOpen`].
    pub fn check_room(&self, file: FileHandle, records: u64) -> Result<(), Status> {
        let (record_bytes, key_bytes) = self.sizes(file)?;
        // Twice: in the file and in the log.
        let disk = records.saturating_mul(2 * (record_bytes + key_bytes));
        let free = self.shared.storage.free_bytes();
        if free.is_ok_and(|free| free < disk) {
            return Err(Status::DiskFull);
        }
        let memory = records.saturating_mul(Changes::memory_bytes_of(record_bytes));
        check_memory_for(memory)
    }
}
