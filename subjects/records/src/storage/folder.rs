//! A folder of the file system.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use concurve_files::Mapped;
use concurve_latch::Mutex;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, Flock, FlockArg, OFlag, fcntl};
use nix::sys::statvfs::statvfs;

use crate::classes;
use crate::error::Fault;
use crate::storage::descriptors::{self, FileNumber};
use crate::storage::mapped;
use crate::storage::{DIRECT_BYTES, Disk, Storage};
use crate::table::Table;

/// Counts the folders that this process and its ancestors opened.
static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// The number of the present start of the machine; 0 if it is not known.
pub fn boot() -> u64 {
    let id = std::fs::read("/proc/sys/kernel/random/boot_id");
    id.map_or(0, |id| {
        u64::from(crc32fast::hash(&id)) << 32 | id.len() as u64
    })
}

/// A folder that one engine at a time uses. Processes forked after it was opened may share it.
#[derive(Debug)]
pub struct Folder {
    place: Arc<Place>,
    opened: Instant,
    /// Released when the folder is dropped, or the last process ends that has it.
    _lock: Flock<File>,
}

/// The path of the folder, and its open files.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    number: u32,
    /// Latched while a name is changed or used.
    files: Mutex<Open>,
}

/// The open files and their current names.
#[derive(Debug, Default)]
struct Open {
    /// The number of files opened so far.
    count: u32,
    names: Table<u32, String>,
}

impl Folder {
    /// Opens the folder, and creates it if it is missing.
    ///
    /// # Errors
    /// If it cannot be created, or another engine uses it.
    pub fn open(path: &Path) -> Result<Self, Fault> {
        std::fs::create_dir_all(path)
            .map_err(Fault::io(|| format!("make the folder {}", path.display())))?;
        let file = File::open(path)
            .map_err(Fault::io(|| format!("open the folder {}", path.display())))?;
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock);
        let lock = lock.map_err(|(_, error)| match error {
            Errno::EWOULDBLOCK => Fault::InUse,
            error => Fault::Io {
                what: format!("lock the folder {}", path.display()),
                source: error.into(),
            },
        })?;
        let place = Place {
            path: path.to_owned(),
            number: FOLDERS.fetch_add(1, Relaxed),
            files: classes::files().mutex(Open::default()),
        };
        Ok(Self {
            place: Arc::new(place),
            opened: Instant::now(),
            _lock: lock,
        })
    }
}

impl Storage for Folder {
    fn open(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut files = self.place.files.lock();
        // Without waiting for the other end, if it is a pipe.
        options.custom_flags(OFlag::O_NONBLOCK.bits());
        let opened = concurve_files::open(&options, &self.place.path.join(name))?;
        if !opened.metadata()?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        let number = files.count;
        files.count += 1;
        files.names.insert(number, name.to_owned());
        drop(files);
        let file = FolderFile {
            place: Arc::clone(&self.place),
            number,
        };
        descriptors::keep(file.number(), opened);
        Ok(Arc::new(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.place.files.lock();
        std::fs::rename(self.place.path.join(from), self.place.path.join(to))?;
        for name in files.names.values_mut().filter(|it| *it == from) {
            to.clone_into(name);
        }
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.place.path.join(name))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.place.path)? {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.place.path)?.sync_all()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let found = statvfs(&self.place.path)?;
        Ok(found.blocks_available() as u64 * found.fragment_size() as u64)
    }

    fn boot(&self) -> u64 {
        boot()
    }

    fn now(&self) -> Duration {
        self.opened.elapsed()
    }
}

/// A file by its number: each process has a descriptor of its own for it.
#[derive(Debug)]
struct FolderFile {
    place: Arc<Place>,
    number: u32,
}

impl FolderFile {
    fn number(&self) -> FileNumber {
        FileNumber {
            folder: self.place.number,
            file: self.number,
        }
    }

    /// Calls `work` with the descriptor of this process.
    fn with<T>(&self, work: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        descriptors::with(self.number(), || self.open_again(), work)
    }

    /// Opens a file that another process opened, or whose descriptor was replaced here.
    fn open_again(&self) -> io::Result<File> {
        let files = self.place.files.lock();
        let name = files.names.get(&self.number).ok_or(Errno::EBADF)?;
        let path = self.place.path.join(name);
        OpenOptions::new().read(true).write(true).open(path)
    }
}

impl Drop for FolderFile {
    fn drop(&mut self) {
        self.place.files.lock().names.remove(&self.number);
        descriptors::forget(self.number());
        mapped::forget(self.number());
    }
}

impl Disk for FolderFile {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.with(|file| read_at(file, buffer, at))
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.with(|file| file.write_all_at(bytes, at))
    }

    fn write_past_cache(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.with(|file| write_past_cache(file, bytes, at))
    }

    fn put(&self, bytes: &[u8], at: u64) -> bool {
        mapped::put(self.number(), || self.with(Mapped::whole), bytes, at)
    }

    fn prepare_put(&self, at: u64, bytes: u64) {
        mapped::prepare(self.number(), at, bytes);
    }

    fn sync(&self) -> io::Result<()> {
        self.with(File::sync_data)
    }

    fn length(&self) -> io::Result<u64> {
        self.with(|file| Ok(file.metadata()?.len()))
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.with(|file| file.set_len(length))
    }
}

/// Writes without the cache of the kernel, or with it where the file system or the device refuses that: then
/// either the flag or the write fails with `EINVAL`. The flag is that of the descriptor, which processes that
/// were forked share.
fn write_past_cache(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    let is_whole = bytes.as_ptr().align_offset(DIRECT_BYTES) == 0
        && bytes.len().is_multiple_of(DIRECT_BYTES)
        && at.is_multiple_of(DIRECT_BYTES as u64);
    if !is_whole {
        return file.write_all_at(bytes, at);
    }
    let flags = OFlag::from_bits_retain(fcntl(file, FcntlArg::F_GETFL)?) - OFlag::O_DIRECT;
    let set = |flags| fcntl(file, FcntlArg::F_SETFL(flags));
    let written = match set(flags | OFlag::O_DIRECT) {
        Ok(_) => file.write_all_at(bytes, at),
        Err(refused) => Err(refused.into()),
    };
    set(flags)?;
    match written {
        Err(error) if error.raw_os_error() == Some(Errno::EINVAL as i32) => {
            file.write_all_at(bytes, at)
        }
        written => written,
    }
}

/// Reads until the buffer is full or the file ends; returns how much it read.
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read_at(&mut buffer[read..], at + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use nix::sys::memfd::{MFdFlags, memfd_create};

    use super::*;

    /// Some bytes that begin `skip` bytes after a place where they can be written past the cache.
    fn aligned(memory: &mut Vec<u8>, skip: usize, bytes: &[u8]) -> std::ops::Range<usize> {
        memory.clear();
        memory.reserve(DIRECT_BYTES + skip + bytes.len());
        let begin = memory.as_ptr().align_offset(DIRECT_BYTES) + skip;
        memory.resize(begin, 0);
        memory.extend_from_slice(bytes);
        begin..memory.len()
    }

    #[test]
    fn what_is_written_past_the_cache_is_read_as_any_other() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let disk = folder.open("f").unwrap();
        // Some of it is in the cache before, and not on the disk.
        let mut model = vec![b'-'; 8 * DIRECT_BYTES + 100];
        disk.write_at(&model, 0).unwrap();
        let mut memory = Vec::new();
        let sizes = [DIRECT_BYTES, 4 * DIRECT_BYTES, 700];
        let places = [0, 3 * DIRECT_BYTES, 5, 8 * DIRECT_BYTES];
        for number in 0..36 {
            let (skip, size, at) = (
                [0, 1, 512][number / 12],
                sizes[number / 4 % 3],
                places[number % 4],
            );
            let byte = b'A' + number as u8;
            let written = aligned(&mut memory, skip, &vec![byte; size]);
            disk.write_past_cache(&memory[written], at as u64).unwrap();
            model.resize(model.len().max(at + size), 0);
            model[at..at + size].fill(byte);
            let mut read = vec![0; model.len() + 1];
            assert_eq!(disk.read_at(&mut read, 0).unwrap(), model.len());
            assert!(read.starts_with(&model), "{size} bytes at {at}, {skip}");
        }
    }

    #[test]
    fn a_file_that_must_be_written_through_the_cache_is() {
        // A file in memory, which has no disk.
        let file = File::from(memfd_create(c"file", MFdFlags::empty()).unwrap());
        let refused = fcntl(&file, FcntlArg::F_SETFL(OFlag::O_DIRECT));
        assert_eq!(refused, Err(Errno::EINVAL));
        let mut memory = Vec::new();
        let bytes = aligned(&mut memory, 0, &[b'x'; DIRECT_BYTES]);
        write_past_cache(&file, &memory[bytes.clone()], 0).unwrap();
        let mut read = [0; DIRECT_BYTES + 1];
        assert_eq!(read_at(&file, &mut read, 0).unwrap(), DIRECT_BYTES);
        assert_eq!(read[..DIRECT_BYTES], memory[bytes]);
    }

    #[test]
    fn files_are_for_their_owner_also_those_of_an_older_version() {
        let place = tempfile::tempdir().unwrap();
        let mode = |name: &str| {
            let status = std::fs::metadata(place.path().join(name)).unwrap();
            status.permissions().mode() & 0o7777
        };
        std::fs::write(place.path().join("old"), b"text").unwrap();
        for before in [0o644, 0o666] {
            let permissions = Permissions::from_mode(before);
            std::fs::set_permissions(place.path().join("old"), permissions).unwrap();
            let folder = Folder::open(place.path()).unwrap();
            folder.open("new").unwrap();
            folder.open("old").unwrap();
            assert_eq!([mode("new"), mode("old")], [0o600, 0o600]);
            folder.rename("new", "old").unwrap();
            assert_eq!(mode("old"), 0o600);
        }
    }
}
