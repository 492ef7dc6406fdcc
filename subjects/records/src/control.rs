//! The control file: where recovery begins to read the log, and which files there must be.
//!
//! Two places of 512 bytes, written alternately, so that one of them is always complete: `magic 16
//! bytes, sequence: u64, start: u64, durable: u64, files: u64, checksum: u32`, little-endian. Format 1
//! had no `files`; since format 3, a frame of the log may have several records. Each place has an
//! [`extents`](crate::extents) file of its own, which is forced to the disk before it.

use std::sync::Arc;

use crate::error::{Failure, Fault};
use crate::extents::{self, Extent};
use crate::storage::{Disk, Storage};

/// The name of the control file; every folder of an engine has one.
pub const CONTROL_FILE: &str = "control";
const MAGIC: &[u8; 16] = b"concurve rec. 3\n";
const MAGIC_OF_FORMAT_2: &[u8; 16] = b"concurve rec. 2\n";
const MAGIC_OF_FORMAT_1: &[u8; 16] = b"concurve rec. 1\n";
const MAGIC_OF_ANY: &[u8] = b"concurve rec. ";
const PLACE_BYTES: u64 = 512;

/// The last checkpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Counts how often the control file was written.
    pub sequence: u64,
    /// Recovery reads the log from here.
    pub start: u64,
    /// All before this byte of the log is on the disk.
    pub durable: u64,
    /// There are at least so many files, dropped ones included.
    pub files: u64,
}

/// What the control file says at a start.
#[derive(Debug, Default)]
pub struct Found {
    /// `None`: the store is new.
    pub last: Option<Checkpoint>,
    pub extents: Vec<Extent>,
    /// What is wrong with the file, though the rest of it suffices: a cause of other faults.
    pub doubt: Option<String>,
}

/// The control file, open, and what it says now.
pub struct Control {
    disk: Arc<dyn Disk>,
    extents_files: [Arc<dyn Disk>; 2],
    pub last: Checkpoint,
    pub extents: Vec<Extent>,
    /// One of the two places may be torn: the other one must stay.
    failure: Failure,
}

/// Reads the control file, and makes none.
pub fn find(storage: &dyn Storage) -> Result<Found, Fault> {
    let what = || format!("read the file {CONTROL_FILE}");
    let names = storage.names().map_err(Fault::io(what))?;
    let bytes = match names.iter().any(|it| it == CONTROL_FILE) {
        true => {
            let disk = storage.open(CONTROL_FILE).map_err(Fault::io(what))?;
            let mut bytes = vec![0; 2 * PLACE_BYTES as usize];
            let read = disk.read_at(&mut bytes, 0).map_err(Fault::io(what))?;
            bytes.truncate(read);
            bytes
        }
        false => Vec::new(),
    };
    let places = || bytes.chunks(PLACE_BYTES as usize);
    let is_in_place = |at: usize, it: &Checkpoint| it.sequence % 2 == at as u64;
    let decoded: Vec<Option<Checkpoint>> = places()
        .map(decode)
        .enumerate()
        .map(|(at, it)| it.filter(|it| is_in_place(at, it)))
        .collect();
    let newer = places().find(|it| is_newer(it));
    if let Some(place) = newer {
        let format = String::from_utf8_lossy(&place[..15]).into_owned();
        return Err(Fault::Newer(format));
    }
    let Some(last) = decoded.iter().flatten().max_by_key(|it| it.sequence) else {
        // Its first write may have been cut off; all other files are made after it.
        let other = names.iter().find(|it| is_of_store(it));
        return match other {
            None => Ok(Found::default()),
            Some(other) => Err(no_control(bytes.is_empty(), other)),
        };
    };
    // Both places are written before the first file is made.
    let bad = (0..2).find(|at| last.sequence > 0 && decoded.get(*at).copied().flatten().is_none());
    Ok(Found {
        last: Some(*last),
        extents: extents::read(storage, last.sequence, &names)?,
        doubt: bad.map(|at| {
            let at = at as u64 * PLACE_BYTES;
            format!(
                "the file {CONTROL_FILE} is damaged from byte {at} on, or was being written there"
            )
        }),
    })
}

fn is_newer(place: &[u8]) -> bool {
    let digits = place.strip_prefix(MAGIC_OF_ANY).unwrap_or_default();
    let has_digit = matches!(digits.first(), Some(b'4'..=b'9')) && digits.get(1) == Some(&b'\n');
    has_digit && !is_ours_but_for_its_digit(place)
}

/// Whether a place is one of this version whose digit is damaged.
fn is_ours_but_for_its_digit(place: &[u8]) -> bool {
    let ours = [MAGIC, MAGIC_OF_FORMAT_2, MAGIC_OF_FORMAT_1];
    ours.iter().any(|magic| {
        let mut place = place.to_vec();
        place[..MAGIC.len()].copy_from_slice(*magic);
        decode(&place).is_some()
    })
}

/// Whether a file is made after the control file.
fn is_of_store(name: &str) -> bool {
    ["log-", "data-", "gone-", "spare-"]
        .iter()
        .any(|it| name.starts_with(it))
}

fn no_control(is_missing: bool, other: &str) -> Fault {
    let how = match is_missing {
        true => "missing or empty",
        false => "damaged at byte 0, or does not belong to the record engine",
    };
    let text = format!("the file {CONTROL_FILE} is {how}, and there is {other}");
    Fault::Damaged(text)
}

impl Control {
    /// Opens the file, or makes it.
    pub fn open(storage: &dyn Storage, found: Found) -> Result<Self, Fault> {
        let what = || format!("open the file {CONTROL_FILE}");
        let control = Self {
            disk: storage.open(CONTROL_FILE).map_err(Fault::io(what))?,
            extents_files: extents::open(storage)?,
            last: found.last.unwrap_or_default(),
            extents: found.extents,
            failure: Failure::default(),
        };
        if found.last.is_none() {
            control.write_place()?;
        }
        storage.sync_names().map_err(Fault::io(what))?;
        Ok(control)
    }

    /// Writes the next state durably.
    pub fn write(&mut self, next: Checkpoint, extents: Vec<Extent>) -> Result<(), Fault> {
        self.failure.check()?;
        let sequence = self.last.sequence + 1;
        self.last = Checkpoint { sequence, ..next };
        self.extents = extents;
        let file = &self.extents_files[(sequence % 2) as usize];
        let written = extents::write(file.as_ref(), sequence, &self.extents);
        let written = written.and_then(|()| self.write_place());
        self.failure.remember(written)
    }

    fn write_place(&self) -> Result<(), Fault> {
        let what = || format!("write the file {CONTROL_FILE}");
        let last = self.last;
        let mut bytes = MAGIC.to_vec();
        for number in [last.sequence, last.start, last.durable, last.files] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        let place = last.sequence % 2 * PLACE_BYTES;
        self.disk.write_at(&bytes, place).map_err(Fault::io(what))?;
        self.disk.sync().map_err(Fault::io(what))
    }
}

fn decode(bytes: &[u8]) -> Option<Checkpoint> {
    let has_files = match bytes.first_chunk()? {
        MAGIC | MAGIC_OF_FORMAT_2 => true,
        MAGIC_OF_FORMAT_1 => false,
        _ => return None,
    };
    let length = MAGIC.len() + 8 * if has_files { 4 } else { 3 };
    let (body, rest) = bytes.split_at_checked(length)?;
    if crc32fast::hash(body).to_le_bytes() != *rest.first_chunk()? {
        return None;
    }
    let number = |at: usize| Some(u64::from_le_bytes(body.get(at..at + 8)?.try_into().ok()?));
    Some(Checkpoint {
        sequence: number(16)?,
        start: number(24)?,
        durable: number(32)?,
        files: number(40).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn garbage_is_no_checkpoint_and_no_panic(
            mut garbage in proptest::collection::vec(any::<u8>(), 0..600),
            has_magic: bool,
        ) {
            if has_magic && garbage.len() >= 16 {
                garbage[..16].copy_from_slice(MAGIC);
            }
            prop_assert_eq!(decode(&garbage), None);
            let _ = is_newer(&garbage);
        }
    }

    #[test]
    fn a_damaged_digit_is_no_newer_version() {
        let mut place = MAGIC.to_vec();
        place.extend([7; 32]);
        place.extend(crc32fast::hash(&place).to_le_bytes());
        place[14] = b'4';
        assert!(!is_newer(&place));
        place[20] ^= 1;
        assert!(is_newer(&place));
    }
}
