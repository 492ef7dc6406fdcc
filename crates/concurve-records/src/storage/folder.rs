//! A folder of the file system.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::error::{Fault, While};
use crate::storage::{Disk, Storage};

/// A folder that one engine at a time uses.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Released when the folder is dropped, or the process ends.
    _lock: Flock<File>,
}

impl Folder {
    /// Makes the folder if it is missing.
    ///
    /// # Errors
    /// If it cannot be made, or another engine uses it.
    pub fn open(path: &Path) -> Result<Self, Fault> {
        std::fs::create_dir_all(path).when(|| format!("make the folder {}", path.display()))?;
        let file = File::open(path).when(|| format!("open the folder {}", path.display()))?;
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock);
        let lock = lock.map_err(|(_, error)| match error {
            Errno::EWOULDBLOCK => Fault::InUse,
            error => Fault::Io {
                what: format!("lock the folder {}", path.display()),
                source: error.into(),
            },
        })?;
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }
}

impl Storage for Folder {
    fn open(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        Ok(Arc::new(options.open(self.path.join(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

impl Disk for File {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let mut read = 0;
        while read < buffer.len() {
            match FileExt::read_at(self, &mut buffer[read..], at + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}
