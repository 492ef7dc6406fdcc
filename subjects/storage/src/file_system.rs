//! The file system: free space, and the page cache before a load, so that reads reach the device.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::Path;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::sys::statvfs::statvfs;
use nix::unistd::syncfs;

use crate::error::Error;
use crate::export::Manifest;

/// `1` drops the page cache, and neither names nor inodes (the kernel's `sysctl/vm.rst`).
const DROP: (&str, &str) = ("/proc/sys/vm/drop_caches", "1");

/// Evicts from the page cache: the `whole` cache of the machine, where this is allowed, otherwise
/// the export files. Returns a description of what was done.
pub fn empty_page_cache(
    manifest: &Manifest,
    database: Option<&Path>,
    whole: bool,
) -> Result<&'static str, Error> {
    if whole {
        // Dirty pages would stay in memory.
        for folder in [Some(manifest.folder.as_path()), database]
            .into_iter()
            .flatten()
        {
            let opened = File::open(folder).map_err(Error::io("open", folder))?;
            let synced = syncfs(opened);
            synced.map_err(Error::io("force to the disk", folder))?;
        }
        if fs::write(DROP.0, DROP.1).is_ok() {
            return Ok("dropped as a whole before the load");
        }
    }
    for file in &manifest.files {
        evict(&manifest.folder.join(&file.name))?;
    }
    Ok(match whole {
        true => "without the right to drop it as a whole, the export files were taken out of it",
        false => "the export files were taken out of it",
    })
}

/// Evicts a file from the page cache. It must be on the disk.
pub fn evict(path: &Path) -> Result<(), Error> {
    let file = File::open(path).map_err(Error::io("open", path))?;
    posix_fadvise(file.as_fd(), 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)
        .map_err(Error::io("take out of the page cache", path))
}

/// Fails if the file system of a path, which need not exist yet, has too little free space.
pub fn require_space(path: &Path, bytes: u64, what: &'static str) -> Result<(), Error> {
    let existing = path.ancestors().find(|it| it.exists());
    let folder = existing.unwrap_or(Path::new("."));
    let system = statvfs(folder);
    let system = system.map_err(Error::io(
        "read the free space of the file system of",
        folder,
    ))?;
    let free = system.blocks_available() * system.fragment_size();
    if free < bytes {
        return Err(Error::Space {
            what,
            path: path.to_owned(),
            bytes,
            free,
        });
    }
    Ok(())
}
