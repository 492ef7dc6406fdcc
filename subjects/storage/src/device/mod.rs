//! The block device of a folder: its counters in the kernel, and its scheduler.

mod counters;
mod mounts;
mod seeks;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use concurve_probe::psi::{self, Pressure};
use nix::sys::stat::{major, minor};

pub use counters::Counters;
pub use seeks::Seeks;

const PRESSURE: &str = "/proc/pressure/io";

/// The device of a folder's file system.
#[derive(Debug, Clone)]
pub struct Device {
    pub name: String,
    /// `/sys/dev/block/MAJOR:MINOR`.
    folder: PathBuf,
}

/// The counters at one time.
#[derive(Debug, Clone)]
pub struct Reading {
    at: Instant,
    counters: Counters,
    pressure: Option<Pressure>,
}

/// The counts between two readings.
#[derive(Debug, Clone, Copy)]
pub struct Interval {
    pub took: Duration,
    pub counted: Counters,
    /// Time in which some task, and in which all tasks, of the machine waited for I/O.
    pub pressure: Option<(Duration, Duration)>,
}

impl Device {
    /// `None` if the file system is not on one block device, but in memory, on a network, or on
    /// several.
    pub fn beneath(folder: &Path) -> Option<Self> {
        let number = mounts::device_of(folder)?;
        let folder = format!("/sys/dev/block/{}:{}", major(number), minor(number));
        let folder = fs::canonicalize(folder).ok()?;
        let name = folder.file_name()?.to_string_lossy().into_owned();
        Some(Self { name, folder })
    }

    /// The current scheduler, if the device has a queue. One over several others has none of its own;
    /// theirs are named, each once.
    pub fn scheduler(&self) -> Option<String> {
        let mut below: Vec<String> = self
            .members()
            .iter()
            .filter_map(Device::scheduler)
            .collect();
        below.sort();
        below.dedup();
        if !below.is_empty() {
            return Some(below.join(", "));
        }
        // A partition's queue is that of its disk, one folder above.
        let places = ["queue/scheduler", "../queue/scheduler"].map(|it| self.folder.join(it));
        let text = places.iter().find_map(|it| fs::read_to_string(it).ok())?;
        let chosen = text.split_once('[')?.1.split_once(']')?.0;
        Some(chosen.to_owned())
    }

    /// The devices that this one is made of, as by LVM; none for one that stands alone.
    fn members(&self) -> Vec<Self> {
        let entries = fs::read_dir(self.folder.join("slaves"));
        let entries = entries.into_iter().flatten().filter_map(Result::ok);
        let member = |entry: fs::DirEntry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let folder = fs::canonicalize(entry.path()).ok()?;
            Some(Self { name, folder })
        };
        entries.filter_map(member).collect()
    }

    pub fn read(&self) -> Option<Reading> {
        let text = fs::read_to_string(self.folder.join("stat")).ok()?;
        let pressure = fs::read_to_string(PRESSURE).ok();
        Some(Reading {
            at: Instant::now(),
            counters: Counters::parse(&text)?,
            pressure: pressure.and_then(|it| psi::parse(&it).ok()),
        })
    }
}

impl Reading {
    pub fn until(&self, later: &Self) -> Interval {
        let pressures = self.pressure.zip(later.pressure);
        Interval {
            took: later.at - self.at,
            counted: later.counters.since(&self.counters),
            pressure: pressures.map(|(before, after)| {
                let full = after.full_ns.unwrap_or(0) - before.full_ns.unwrap_or(0);
                (
                    Duration::from_nanos(after.some_ns - before.some_ns),
                    Duration::from_nanos(full),
                )
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn device(folder: &Path, name: &str, scheduler: &str) -> Device {
        let folder = folder.join(name);
        fs::create_dir_all(folder.join("queue")).unwrap();
        fs::create_dir(folder.join("slaves")).unwrap();
        fs::write(folder.join("queue/scheduler"), scheduler).unwrap();
        Device {
            name: name.into(),
            folder,
        }
    }

    #[test]
    fn a_device_over_others_has_their_schedulers() {
        let root = tempfile::tempdir().unwrap();
        let whole = device(root.path(), "dm-0", "none\n");
        assert_eq!(whole.scheduler(), None, "it has no queue of its own");
        for (name, text) in [("a", "none [bfq]\n"), ("b", "[bfq] none\n")] {
            let member = device(root.path(), name, text);
            assert_eq!(member.scheduler().as_deref(), Some("bfq"));
            symlink(&member.folder, whole.folder.join("slaves").join(name)).unwrap();
        }
        assert_eq!(whole.scheduler().as_deref(), Some("bfq"));
        fs::write(root.path().join("b/queue/scheduler"), "[none] bfq\n").unwrap();
        assert_eq!(whole.scheduler().as_deref(), Some("bfq, none"));
    }
}
