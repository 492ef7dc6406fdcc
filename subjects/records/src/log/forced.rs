//! The file `forced`: up to where the log was forced to the disk.
//!
//! It is written after each force of the log, and forced itself only with each new file of the log and
//! each checkpoint. So after a kill it says exactly what was acknowledged, and after a loss of power it
//! may say too little, never too much. It also names the newest file of the log, and says how long it is
//! at least: so a file that is cut, or missing, is noticed. `magic 8 bytes, end: u64, boot: u64, file:
//! u64, length: u64, checksum: u32`.

use std::sync::Arc;

use crate::error::Fault;
use crate::storage::{Disk, Storage};

const NAME: &str = "forced";
const MAGIC: &[u8; 8] = b"forced1\n";
const BYTES: usize = 44;

/// What the file says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    /// All before this byte of the log was forced to the disk.
    pub end: u64,
    /// The start of the machine in which that was; 0: unknown.
    boot: u64,
    /// Where the newest file of the log begins.
    pub file: u64,
    /// Its length at least; 0: it is not known that there is one.
    pub length: u64,
}

impl Mark {
    /// What is in the storage, nothing if the file is not there or not whole.
    pub fn find(storage: &dyn Storage) -> Result<Self, Fault> {
        let what = || format!("read the file {NAME}");
        let names = storage.names().map_err(Fault::io(what))?;
        if !names.iter().any(|it| it == NAME) {
            return Ok(Self::default());
        }
        let disk = storage.open(NAME).map_err(Fault::io(what))?;
        let mut bytes = [0; BYTES];
        let read = disk.read_at(&mut bytes, 0).map_err(Fault::io(what))?;
        Ok(Self::decode(&bytes[..read]).unwrap_or_default())
    }

    /// Whether the machine has run since, so that nothing that was written is lost.
    pub fn is_of_boot(&self, boot: u64) -> bool {
        boot != 0 && self.boot == boot
    }

    fn encode(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for number in [self.end, self.boot, self.file, self.length] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (body, checksum) = bytes.get(..BYTES)?.split_at(BYTES - 4);
        if !body.starts_with(MAGIC) || crc32fast::hash(body).to_le_bytes() != checksum {
            return None;
        }
        let number = |at: usize| Some(u64::from_le_bytes(body.get(at..at + 8)?.try_into().ok()?));
        Some(Self {
            end: number(8)?,
            boot: number(16)?,
            file: number(24)?,
            length: number(32)?,
        })
    }
}

/// The file, open.
pub struct Forced {
    disk: Arc<dyn Disk>,
    mark: Mark,
}

impl Forced {
    /// Opens or makes the file, to write on from what it says.
    pub fn open(storage: &dyn Storage, mark: Mark) -> Result<Self, Fault> {
        let opened = storage.open(NAME);
        let disk = opened.map_err(Fault::io(|| format!("open the file {NAME}")))?;
        Ok(Self { disk, mark })
    }

    /// Whether the newest file of the log, of which the length is known, begins at a byte.
    pub fn names(&self, file: u64) -> bool {
        self.mark.length > 0 && self.mark.file == file
    }

    /// Notes that all before a byte of the log was forced to the disk.
    pub fn note(&mut self, end: u64) -> Result<(), Fault> {
        self.mark.end = end;
        let written = self.disk.write_at(&self.mark.encode(), 0);
        written.map_err(Fault::io(|| format!("write the file {NAME}")))
    }

    /// Notes durably which file of the log is the newest.
    pub fn note_file(&mut self, file: u64, length: u64) -> Result<(), Fault> {
        (self.mark.file, self.mark.length) = (file, length);
        self.note(self.mark.end)?;
        let synced = self.disk.sync();
        synced.map_err(Fault::io(|| format!("force the file {NAME} to the disk")))
    }

    /// Forcing the log to the disk has failed: what was written may be lost though the machine runs on.
    /// Without this note, the next start may refuse an end that is torn, so it need not succeed.
    pub fn doubt(&mut self) {
        self.mark.boot = 0;
        let _ = self.note(self.mark.end);
    }

    /// From now on, nothing that was written is lost as long as the machine runs: what an earlier loss of
    /// power had torn is cut off.
    pub fn begin(&mut self, boot: u64, end: u64) {
        (self.mark.boot, self.mark.end) = (boot, end);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_mark_is_read_back_and_a_damaged_one_is_not(
            end: u64, boot: u64, file: u64, length: u64, at in 0..BYTES, flip in 1..=255_u8,
        ) {
            let mark = Mark { end, boot, file, length };
            let mut bytes = mark.encode();
            prop_assert_eq!(Mark::decode(&bytes), Some(mark));
            prop_assert_eq!(Mark::decode(&bytes[..at]), None);
            bytes[at] ^= flip;
            prop_assert_eq!(Mark::decode(&bytes), None);
        }
    }
}
