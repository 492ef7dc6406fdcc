//! Files that are read and written without the page cache (`O_DIRECT`).

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// The alignment of addresses in memory and of offsets in files.
pub const ALIGNMENT: usize = 4096;
const PART_BYTES: usize = 1 << 20;

pub struct File {
    file: fs::File,
    pub path: PathBuf,
    pub bytes: u64,
}

impl File {
    /// Creates a file of so many bytes, and opens it.
    pub fn make(path: &Path, bytes: u64) -> Result<Self, Error> {
        let mut file = concurve_files::create(path).map_err(Error::io("make", path))?;
        let part = vec![0x5a; PART_BYTES];
        let mut left = bytes;
        while left > 0 {
            let now = left.min(PART_BYTES as u64) as usize;
            file.write_all(&part[..now])
                .map_err(Error::io("fill", path))?;
            left -= now as u64;
        }
        file.sync_all()
            .map_err(Error::io("force to the disk", path))?;
        Self::open(path)
    }

    /// Opens an existing file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(nix::libc::O_DIRECT)
            .open(path)
            .map_err(Error::io("open with O_DIRECT", path))?;
        let bytes = file
            .metadata()
            .map_err(Error::io("read the size of", path))?
            .len();
        Ok(Self {
            file,
            path: path.to_owned(),
            bytes,
        })
    }

    pub fn read(&self, into: &mut Buffer, at: u64) -> Result<(), Error> {
        let read = self.file.read_exact_at(into.bytes_mut(), at);
        read.map_err(Error::io("read", &self.path))
    }

    pub fn write(&self, from: &Buffer, at: u64) -> Result<(), Error> {
        self.file
            .write_all_at(from.bytes(), at)
            .map_err(Error::io("write", &self.path))
    }
}

/// Memory with an aligned start.
pub struct Buffer {
    memory: Vec<u8>,
    begin: usize,
    length: usize,
}

impl Buffer {
    pub fn new(length: usize) -> Self {
        let memory = vec![0xa5; length + ALIGNMENT];
        let begin = memory.as_ptr().align_offset(ALIGNMENT);
        Self {
            memory,
            begin,
            length,
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.begin..self.begin + self.length]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.begin..self.begin + self.length]
    }
}
