//! The control file: where recovery begins to read the log.
//!
//! Two places of 512 bytes, written alternately, so that one of them is always complete: `magic 16
//! bytes, sequence: u64, start: u64, durable: u64, checksum: u32`, little-endian.

use std::sync::Arc;

use crate::error::Fault;
use crate::storage::{Disk, Storage};

/// The name of the control file; every folder of an engine has one.
pub const CONTROL_FILE: &str = "control";
const MAGIC: &[u8; 16] = b"concurve rec. 1\n";
const PLACE_BYTES: u64 = 512;
const BYTES: usize = 44;

/// The last checkpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Counts checkpoints.
    pub sequence: u64,
    /// Recovery reads the log from here.
    pub start: u64,
    /// All before this byte of the log is on the disk.
    pub durable: u64,
}

/// The control file, open.
pub struct Control {
    disk: Arc<dyn Disk>,
}

impl Control {
    /// Opens or makes the file; `None` says that it is new.
    pub fn open(storage: &dyn Storage) -> Result<(Self, Option<Checkpoint>), Fault> {
        let what = || "read the control file".to_owned();
        let disk = storage.open(CONTROL_FILE).map_err(Fault::io(what))?;
        let mut bytes = vec![0; 2 * PLACE_BYTES as usize];
        let length = disk.read_at(&mut bytes, 0).map_err(Fault::io(what))?;
        let places = bytes.chunks(PLACE_BYTES as usize);
        let last = places.filter_map(decode).max_by_key(|it| it.sequence);
        let log_exists = storage
            .names()
            .map_err(Fault::io(what))?
            .iter()
            .any(|it| it.starts_with("log-"));
        // Its first write may have been cut off; the log is created after it.
        if last.is_none() && length > 0 && log_exists {
            let text = "the control file is damaged, or does not belong to the record engine";
            return Err(Fault::Damaged(text.to_owned()));
        }
        Ok((Self { disk }, last))
    }

    /// Writes a checkpoint durably.
    pub fn write(&self, checkpoint: &Checkpoint) -> Result<(), Fault> {
        let what = || "write the control file".to_owned();
        let mut bytes = MAGIC.to_vec();
        for number in [checkpoint.sequence, checkpoint.start, checkpoint.durable] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        let place = checkpoint.sequence % 2 * PLACE_BYTES;
        self.disk.write_at(&bytes, place).map_err(Fault::io(what))?;
        self.disk.sync().map_err(Fault::io(what))
    }
}

fn decode(bytes: &[u8]) -> Option<Checkpoint> {
    let (body, checksum) = bytes.get(..BYTES)?.split_at(BYTES - 4);
    if !body.starts_with(MAGIC) || crc32fast::hash(body).to_le_bytes() != checksum {
        return None;
    }
    let number = |at: usize| Some(u64::from_le_bytes(body.get(at..at + 8)?.try_into().ok()?));
    Some(Checkpoint {
        sequence: number(16)?,
        start: number(24)?,
        durable: number(32)?,
    })
}
