//! What the processes of a tree map as program text: by an exec, and by libraries that are loaded later.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::ring::{u32_at, u64_at};

/// Where the path begins in the record of a mapping.
const PATH_AT: usize = 72;

/// A process has this program text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextMapping {
    pub pid: u32,
    pub start: u64,
    pub bytes: u64,
    /// Where in the file it begins.
    pub offset: u64,
    /// As the process names the file; of memory without a file, a name such as `//anon` or `[vdso]`.
    pub path: PathBuf,
}

impl TextMapping {
    /// Header, process, thread, address, length, offset, the file's device and number, permissions and flags,
    /// path. None of a record that is too short.
    pub(super) fn parse(record: &[u8]) -> Option<Self> {
        let path = record.get(PATH_AT..).filter(|path| !path.is_empty())?;
        let end = path.iter().position(|byte| *byte == 0);
        Some(Self {
            pid: u32_at(record, 8),
            start: u64_at(record, 16),
            bytes: u64_at(record, 24),
            offset: u64_at(record, 32),
            path: PathBuf::from(OsStr::from_bytes(&path[..end.unwrap_or(path.len())])),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(words: &[(usize, u64)]) -> Vec<u8> {
        let mut record = vec![0; 96];
        for (at, word) in words {
            record[*at..*at + 8].copy_from_slice(&word.to_le_bytes());
        }
        record[72..84].copy_from_slice(b"/lib/libm.so");
        record
    }

    #[test]
    fn a_mapping_has_its_place_and_its_path() {
        let words = [
            (8, 500 | 500 << 32),
            (16, 0x7f00_0000),
            (24, 0x1000),
            (32, 0x2000),
        ];
        let mut bytes = record(&words);
        let expected = TextMapping {
            pid: 500,
            start: 0x7f00_0000,
            bytes: 0x1000,
            offset: 0x2000,
            path: "/lib/libm.so".into(),
        };
        assert_eq!(TextMapping::parse(&bytes), Some(expected));
        // Without its end, a path is what is there.
        bytes[84..].fill(b'x');
        let found = TextMapping::parse(&bytes).unwrap();
        assert_eq!(found.path.as_os_str().len(), 24);
    }

    #[test]
    fn a_record_that_is_cut_is_none() {
        let whole = record(&[(8, 500)]);
        for length in 0..=72 {
            assert_eq!(TextMapping::parse(&whole[..length]), None, "{length}");
        }
    }
}
