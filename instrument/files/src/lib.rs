//! Files of users: the permissions of those that programs write, for their owner alone, unless
//! `CONCURVE_FILE_MODE` says otherwise; reading those that a user names ([`open_named`]); and files
//! that are written through memory ([`Mapped`]).

mod input;
mod mapped;

pub use mapped::Mapped;

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::stat::{Mode, umask};

pub use input::{Input, PATIENCE, open_named, read_named, read_named_text};

/// Names other permissions, in octal as `chmod` takes them: `640`.
pub const VARIABLE: &str = "CONCURVE_FILE_MODE";

/// Reading and writing, for the owner alone.
const OWNER_ALONE: u32 = 0o600;

/// The permissions of files that are written.
///
/// # Errors
/// If the variable has something else than permissions of a file that its owner may read and write.
pub fn mode() -> io::Result<u32> {
    match std::env::var_os(VARIABLE) {
        None => Ok(OWNER_ALONE),
        Some(text) => text.to_str().and_then(parse).ok_or_else(|| {
            let text = format!(
                "{VARIABLE}={}: give permissions in octal that let the owner read and write, such \
                 as 640",
                text.display()
            );
            io::Error::new(io::ErrorKind::InvalidInput, text)
        }),
    }
}

fn parse(text: &str) -> Option<u32> {
    let is_octal =
        (3..=4).contains(&text.len()) && text.bytes().all(|it| (b'0'..=b'7').contains(&it));
    let mode = u32::from_str_radix(text, 8).ok().filter(|_| is_octal)?;
    (mode & OWNER_ALONE == OWNER_ALONE && mode & !0o666 == 0).then_some(mode)
}

/// Opens a file by these options and gives it the permissions, also if it is there already with others.
///
/// # Errors
/// If it cannot be opened, or not be given the permissions.
pub fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let file = open_as_it_is(options, path)?;
    keep_private(&file)?;
    Ok(file)
}

/// The same, but a file that is there keeps its permissions until [`keep_private`]: for a file that may turn
/// out to be somebody else's.
///
/// # Errors
/// If it cannot be opened.
pub fn open_as_it_is(options: &OpenOptions, path: &Path) -> io::Result<File> {
    options.clone().mode(mode()?).open(path)
}

/// Gives a file the permissions. Those of a device or a pipe, or of a file of another user, stay.
///
/// # Errors
/// If the system refuses it.
pub fn keep_private(file: &File) -> io::Result<()> {
    let (mode, status) = (mode()?, file.metadata()?);
    if !status.is_file() || status.permissions().mode() & 0o7777 == mode {
        return Ok(());
    }
    match file.set_permissions(Permissions::from_mode(mode)) {
        Err(error) if error.raw_os_error() == Some(Errno::EPERM as i32) => Ok(()),
        set => set,
    }
}

/// Opens a file to write it anew.
///
/// # Errors
/// As [`open`].
pub fn create(path: &Path) -> io::Result<File> {
    open(
        OpenOptions::new().write(true).create(true).truncate(true),
        path,
    )
}

/// Writes a file anew.
///
/// # Errors
/// As [`open`], or if it cannot be written.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    create(path)?.write_all(content.as_ref())
}

/// From now on new files and folders of this process are for their owner alone, too, if a library makes
/// them. To be called first in `main`, by a program that starts no programs of others.
///
/// # Errors
/// As [`mode`].
pub fn keep_new_files_private() -> io::Result<()> {
    let files = mode()?;
    // Who may read a file may enter its folder.
    let folders = files | (files & 0o444) >> 2;
    umask(Mode::from_bits_truncate(0o777 & !folders));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_for_its_owner_also_if_it_was_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        create(&path).unwrap();
        assert_eq!(mode(), 0o600);
        for before in [0o644, 0o666, 0o777, 0o4755] {
            std::fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
            write(&path, "text").unwrap();
            assert_eq!(mode(), 0o600, "from {before:o}");
            assert_eq!(std::fs::read(&path).unwrap(), b"text");
        }
    }

    #[test]
    fn a_device_keeps_its_permissions() {
        let before = std::fs::metadata("/dev/null").unwrap().permissions();
        create(Path::new("/dev/null")).unwrap();
        assert_eq!(
            std::fs::metadata("/dev/null").unwrap().permissions(),
            before
        );
    }

    #[test]
    fn permissions_are_octal_and_let_the_owner_read_and_write() {
        for (text, mode) in [
            ("600", 0o600),
            ("640", 0o640),
            ("0664", 0o664),
            ("666", 0o666),
        ] {
            assert_eq!(parse(text), Some(mode));
        }
        for text in [
            "", "6", "44", "444", "200", "0o600", "700", "4600", "680", "+600", "06000", "rw",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
