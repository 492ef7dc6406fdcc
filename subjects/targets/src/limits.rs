//! Which limit prevents a program from starting another thread: see `pthread_create(3)`, `proc(5)`.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::getuid;

/// A limit on the number of threads, and how much of it is used.
#[derive(Debug, Clone, PartialEq)]
struct Limit {
    name: String,
    used: u64,
    limit: u64,
}

impl Limit {
    fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// Whether this may be the limit that was reached. The counts need not be equal: other threads
    /// start and end between the refusal and the reading, and the kernel reserves 300 process ids.
    fn is_full(&self) -> bool {
        self.left() <= (self.limit / 100).max(8)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{} ({} of {} used)", self.name, self.used, self.limit)
    }
}

/// Says in one line why a thread could not be started: the error and the fullest limit.
pub fn explain(error: &io::Error) -> String {
    let errno = error.raw_os_error().map_or_else(
        || error.to_string(),
        |number| format!("{:?}", Errno::from_raw(number)),
    );
    let full = limits().into_iter().filter(Limit::is_full);
    match full.min_by_key(Limit::left) {
        Some(limit) => format!("{limit}, {errno}"),
        None => format!("no limit that could be read (perhaps memory), {errno}"),
    }
}

/// Every limit that can be read and that applies to this process.
fn limits() -> Vec<Limit> {
    let mut found = pids_cgroups();
    found.extend(process_limit());
    let tasks = read("/proc/loadavg").as_deref().and_then(tasks_of_loadavg);
    for name in ["kernel/threads-max", "kernel/pid_max"] {
        let limit = read_number(Path::new("/proc/sys").join(name));
        if let (Some(used), Some(limit)) = (tasks, limit) {
            let name = name.trim_start_matches("kernel/").to_owned();
            found.push(Limit { name, used, limit });
        }
    }
    found
}

/// The pids controllers above this process, v1 or v2.
fn pids_cgroups() -> Vec<Limit> {
    let (Some(groups), Some(mounts)) = (read("/proc/self/cgroup"), read("/proc/self/mounts"))
    else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (root, group) in pids_hierarchies(&groups, &mounts) {
        for ancestor in group.ancestors() {
            let directory = root.join(ancestor.strip_prefix("/").unwrap_or(ancestor));
            // The root group has no pids.max, and `max` is no number: no limit in either case.
            let limit = read_number(directory.join("pids.max"));
            let used = read_number(directory.join("pids.current"));
            if let (Some(limit), Some(used)) = (limit, used) {
                let name = format!("pids cgroup {}", ancestor.display());
                found.push(Limit { name, used, limit });
            }
        }
    }
    found
}

/// Mount point and group of each hierarchy that may hold a pids controller.
fn pids_hierarchies(groups: &str, mounts: &str) -> Vec<(PathBuf, PathBuf)> {
    let mount_of = |kind: &str, controller: Option<&str>| {
        mounts.lines().find_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let (point, found, options) = (fields.next()?, fields.next()?, fields.next()?);
            let matches = found == kind
                && controller.is_none_or(|name| options.split(',').any(|it| it == name));
            matches.then(|| PathBuf::from(point))
        })
    };
    groups
        .lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, group) = (fields.next()?, fields.next()?);
            let root = match controllers {
                "" => mount_of("cgroup2", None),
                _ if controllers.split(',').any(|it| it == "pids") => {
                    mount_of("cgroup", Some("pids"))
                }
                _ => None,
            };
            Some((root?, PathBuf::from(group)))
        })
        .collect()
}

/// RLIMIT_NPROC, unless this process is exempt.
fn process_limit() -> Option<Limit> {
    let (limit, _) = getrlimit(Resource::RLIMIT_NPROC).ok()?;
    let uid = getuid();
    if uid.is_root() || is_exempt(&read("/proc/self/status")?) {
        return None;
    }
    let used = fs::read_dir("/proc")
        .ok()?
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit())
        .filter_map(|entry| threads_of(&read(entry.path().join("status"))?, uid.as_raw()))
        .sum();
    let name = "RLIMIT_NPROC".to_owned();
    Some(Limit { name, used, limit })
}

/// CAP_SYS_RESOURCE or CAP_SYS_ADMIN lift RLIMIT_NPROC.
fn is_exempt(status: &str) -> bool {
    let effective = field(status, "CapEff:").and_then(|it| u64::from_str_radix(it, 16).ok());
    effective.is_some_and(|bits| bits & (1 << 24 | 1 << 21) != 0)
}

/// Threads of the process with this `/proc/PID/status`, if it belongs to `uid`.
fn threads_of(status: &str, uid: u32) -> Option<u64> {
    let owner: u32 = field(status, "Uid:")?.split('\t').next()?.parse().ok()?;
    let threads = field(status, "Threads:")?.parse().ok()?;
    (owner == uid).then_some(threads)
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim())
}

/// All tasks of the machine, from the fourth field of `/proc/loadavg`: `runnable/all`.
fn tasks_of_loadavg(text: &str) -> Option<u64> {
    let (_, all) = text.split(' ').nth(3)?.split_once('/')?;
    all.parse().ok()
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The number that a file holds, if it holds one.
pub fn read_number(path: impl AsRef<Path>) -> Option<u64> {
    read(path)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
proc /proc proc rw,relatime 0 0
tmpfs /sys/fs/cgroup tmpfs rw,relatime,mode=755 0 0
cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0
cgroup /sys/fs/cgroup/pids cgroup rw,relatime,pids 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
";

    #[test]
    fn the_pids_controller_is_found_in_either_version_of_cgroups() {
        let v1 = "9:name=systemd:/\n8:pids:/storm/inner\n1:cpu:/\n";
        let found = pids_hierarchies(v1, MOUNTS);
        let expected = ("/sys/fs/cgroup/pids".into(), "/storm/inner".into());
        assert_eq!(found, [expected]);

        let mounts = "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate,memory_recursiveprot 0 0\n";
        let found = pids_hierarchies("0::/user.slice/session-1.scope\n", mounts);
        let expected = (
            "/sys/fs/cgroup".into(),
            "/user.slice/session-1.scope".into(),
        );
        assert_eq!(found, [expected]);
    }

    #[test]
    fn threads_count_for_their_owner_alone() {
        let status =
            "Name:\tpostgres\nUid:\t104\t104\t104\t104\nThreads:\t3\nCapEff:\t0000000000000000\n";
        assert_eq!(threads_of(status, 104), Some(3));
        assert_eq!(threads_of(status, 0), None);
        assert!(!is_exempt(status));
        assert!(is_exempt("CapEff:\t000001fffeffffff\n"));
    }

    #[test]
    fn loadavg_tells_all_tasks() {
        assert_eq!(tasks_of_loadavg("0.20 0.18 0.12 1/80 11206\n"), Some(80));
        assert_eq!(tasks_of_loadavg(""), None);
    }

    #[test]
    fn a_limit_is_full_when_next_to_nothing_is_left() {
        let limit = |used, limit| Limit {
            name: "pids".to_owned(),
            used,
            limit,
        };
        assert!(limit(300, 300).is_full());
        assert!(limit(32_500, 32_768).is_full());
        assert!(!limit(100, 300).is_full());
    }
}
