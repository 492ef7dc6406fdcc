//! The page cache before a load: what is read from it is read from no device.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::Path;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::unistd::syncfs;

use crate::error::{At, Error};
use crate::export::Manifest;

/// `1` drops the page cache, and neither names nor inodes (the kernel's `sysctl/vm.rst`).
const DROP: (&str, &str) = ("/proc/sys/vm/drop_caches", "1");

/// Takes what will be read out of it: as a `whole` that of the machine, where this is allowed, else
/// the export files. Returns which, for the record.
pub fn empty(
    manifest: &Manifest,
    database: Option<&Path>,
    whole: bool,
) -> Result<&'static str, Error> {
    if whole {
        // What is not yet on the disk stays in memory.
        for folder in [Some(manifest.folder.as_path()), database]
            .into_iter()
            .flatten()
        {
            let opened = File::open(folder).at("open", folder)?;
            let synced = syncfs(opened).map_err(Into::into);
            synced.at("force to the disk", folder)?;
        }
        if fs::write(DROP.0, DROP.1).is_ok() {
            return Ok("dropped as a whole before the load");
        }
    }
    for file in &manifest.files {
        forget(&manifest.folder.join(&file.name))?;
    }
    Ok(match whole {
        true => "without the right to drop it as a whole, the export files were taken out of it",
        false => "the export files were taken out of it",
    })
}

/// Takes a file that is on the disk out of the page cache.
pub fn forget(path: &Path) -> Result<(), Error> {
    let file = File::open(path).at("open", path)?;
    posix_fadvise(file.as_fd(), 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)
        .map_err(std::io::Error::from)
        .at("take out of the page cache", path)
}
