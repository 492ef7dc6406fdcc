//! The two files of a backup: which is whose, and how they change places.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, Flock, FlockArg, RenameFlags, renameat2};

use crate::backup::error::{BackupError, failed};

/// What a backup file is rewritten into.
pub fn other_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

/// Lets two files take each other's name at once.
pub fn exchange(one: &Path, other: &Path) -> Result<(), Errno> {
    renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE)
}

/// Opens or creates a file that this server alone may use.
pub fn open_locked(path: &Path) -> Result<Flock<File>, BackupError> {
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path);
    lock(
        opened.map_err(|source| failed(path, "open it", source))?,
        path,
    )
}

fn lock(file: File, path: &Path) -> Result<Flock<File>, BackupError> {
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| match error {
        Errno::EWOULDBLOCK => BackupError::InUse {
            path: path.to_owned(),
        },
        error => failed(path, "lock it", error.into()),
    })
}

/// Makes the name of a file durable.
pub fn sync_folder_of(path: &Path) -> Result<(), BackupError> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|source| failed(path, "force its folder to the disk", source))
}
