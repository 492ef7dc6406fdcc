//! Finds the device of a folder.
//!
//! `stat` returns the number of the device, except for file systems that may have several, such as
//! Btrfs: their source is in `/proc/self/mountinfo` (proc(5)).

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const MOUNTS: &str = "/proc/self/mountinfo";

/// The number of the block device of a folder's file system.
pub fn device_of(folder: &Path) -> Option<u64> {
    let number = fs::metadata(folder).ok()?.dev();
    if is_block_device(number) {
        return Some(number);
    }
    let mounts = fs::read_to_string(MOUNTS).ok()?;
    let source = source(&mounts, &mount_of(folder)?)?;
    let number = fs::metadata(source).ok()?.rdev();
    is_block_device(number).then_some(number)
}

fn is_block_device(number: u64) -> bool {
    let (major, minor) = (nix::sys::stat::major(number), nix::sys::stat::minor(number));
    Path::new(&format!("/sys/dev/block/{major}:{minor}")).exists()
}

/// The id of the mount of a folder.
fn mount_of(folder: &Path) -> Option<String> {
    let opened = File::open(folder).ok()?;
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", opened.as_raw_fd())).ok()?;
    let line = info.lines().find_map(|it| it.strip_prefix("mnt_id:"));
    line.map(|it| it.trim().to_owned())
}

/// The source of a mount. Names of devices have no blanks, which are escaped as `\040`.
fn source<'a>(mounts: &'a str, number: &str) -> Option<&'a str> {
    let of = |line: &'a str| {
        let (before, after) = line.split_once(" - ")?;
        (before.split(' ').next()? == number).then(|| after.split(' ').nth(1))?
    };
    mounts.lines().find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_follows_the_type() {
        let mounts = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
                      140 22 0:51 / /mnt/my\\040disk rw - btrfs /dev/loop1 rw,subvolid=5\n";
        assert_eq!(source(mounts, "140"), Some("/dev/loop1"));
        assert_eq!(source(mounts, "22"), Some("/dev/vda"));
        assert_eq!(source(mounts, "14"), None);
    }

    #[test]
    fn a_file_system_without_a_device_has_none() {
        assert_eq!(device_of(Path::new("/proc")), None);
        assert_eq!(device_of(Path::new("/nowhere")), None);
    }
}
