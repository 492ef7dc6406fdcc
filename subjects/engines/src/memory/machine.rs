//! How much memory the machine has for us: what is available, and what the limit of our control group allows,
//! which is how containers are bounded. A program that touches more is killed by the kernel, without a word.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// How many bytes programs may still allocate, as the kernel says (proc(5), meminfo), and within the limit of
/// the control group; `None` if neither is known.
pub fn machine_bytes() -> Option<u64> {
    let available = available();
    [available, limit()].into_iter().flatten().min()
}

/// How many bytes programs may still allocate if this one uses so many already.
pub fn left_of_machine(used: u64) -> u64 {
    let of_limit = limit().map(|it| it.saturating_sub(used));
    let known = [available(), of_limit].into_iter().flatten();
    known.min().unwrap_or(u64::MAX)
}

fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|it| it.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// The limit of the control group, read once: it rarely changes.
fn limit() -> Option<u64> {
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        smallest_limit(&groups, |path| std::fs::read_to_string(path).ok())
    })
}

/// The smallest limit of the groups of a process and of those above them, of either version of control groups.
/// A container may see its own group at the top.
fn smallest_limit(groups: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let files = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next().unwrap_or_default();
        let (top, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        };
        let is_memory = controllers.is_empty() || controllers.split(',').any(|it| it == "memory");
        let group = parts.next().filter(|_| is_memory);
        let above = group.into_iter().flat_map(|it| Path::new(it).ancestors());
        above.map(move |group| {
            let group = group.strip_prefix("/").unwrap_or(group);
            PathBuf::from(top).join(group).join(file)
        })
    });
    // `max`, which is none, is no number. Version 1 writes one that no machine has.
    let limits = files.filter_map(|file| read(&file)?.trim().parse().ok());
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(groups: &str, files: &[(&str, &str)]) -> Option<u64> {
        smallest_limit(groups, |path| {
            let file = files.iter().find(|it| Path::new(it.0) == path);
            file.map(|it| it.1.to_owned())
        })
    }

    #[test]
    fn the_smallest_limit_of_a_group_and_those_above_it_counts() {
        let files = [
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/memory.max", "1048576\n"),
            ("/sys/fs/cgroup/memory.max", "2097152\n"),
        ];
        assert_eq!(limit("0::/a/b\n", &files), Some(1 << 20));
        assert_eq!(limit("0::/\n", &files), Some(2 << 20));
        assert_eq!(limit("0::/elsewhere\n", &files[..2]), None);
        assert_eq!(limit("", &files), None);
    }

    #[test]
    fn version_1_has_a_hierarchy_for_memory() {
        let groups = "5:cpu,cpuacct:/x\n4:memory:/docker/1f\n0::/y\n";
        let files = [
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "67108864\n"),
            ("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "1\n"),
        ];
        assert_eq!(limit(groups, &files), Some(64 << 20));
    }

    #[test]
    fn garbage_is_no_limit() {
        for groups in [
            "::",
            "0::",
            "\n\n",
            "memory",
            "4:memory:relative",
            "4:memory",
        ] {
            limit(groups, &[("/sys/fs/cgroup/memory.max", "no number")]);
        }
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(machine_bytes().is_some_and(|it| it > 0));
        assert!(left_of_machine(u64::MAX) <= left_of_machine(0));
    }
}
