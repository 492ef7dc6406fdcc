//! Which limit prevents the creation of threads, for the error message.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Memory mappings of one thread: its stack and its signal stack, each with a guard page.
const MAPS_PER_THREAD: u64 = 4;

/// Mappings reserved for everything else.
const MAPS_SPARE: u64 = 500;

/// Refuses a number of threads that would run out of memory mappings.
///
/// The standard library cannot report that as an error: the new thread dies while it makes its
/// signal stack. So it is checked before.
pub(crate) fn check_memory_maps(threads: usize) -> Result<(), Error> {
    let Some(maps) = number(Path::new("/proc/sys/vm/max_map_count")) else {
        return Ok(());
    };
    if threads as u64 <= maps.saturating_sub(MAPS_SPARE) / MAPS_PER_THREAD {
        return Ok(());
    }
    Err(Error::Threads {
        requested: threads,
        created: 0,
        limit: format!("vm.max_map_count = {maps} ({MAPS_PER_THREAD} mappings a thread)"),
        source: std::io::ErrorKind::OutOfMemory.into(),
    })
}

/// The limit that has just refused a thread: the one with the least capacity left.
pub(crate) fn exhausted_limit() -> String {
    let candidates = [pids_cgroup(), user_processes(), system_threads(), pid_max()];
    candidates
        .into_iter()
        .flatten()
        .min_by_key(|limit| limit.max.saturating_sub(limit.used))
        .map_or_else(
            || "unknown (no limit could be read); see pthread_create(3)".into(),
            |limit| format!("{} = {} ({} in use)", limit.name, limit.max, limit.used),
        )
}

struct Limit {
    name: String,
    max: u64,
    used: u64,
}

/// The pids controller of cgroup v1 or v2: the nearest limit on the way to the root.
fn pids_cgroup() -> Option<Limit> {
    let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
    pids_directories(&membership)
        .iter()
        .filter_map(|directory| {
            Some(Limit {
                name: format!("pids.max of {}", directory.display()),
                max: number(&directory.join("pids.max"))?,
                used: number(&directory.join("pids.current"))?,
            })
        })
        .min_by_key(|limit| limit.max.saturating_sub(limit.used))
}

/// The directories whose `pids.max` binds a process with this `/proc/PID/cgroup`.
fn pids_directories(membership: &str) -> Vec<PathBuf> {
    membership
        .lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            let root = match controllers {
                "" => "/sys/fs/cgroup",
                _ if controllers.split(',').any(|name| name == "pids") => "/sys/fs/cgroup/pids",
                _ => return None,
            };
            Some((PathBuf::from(root), path))
        })
        .flat_map(|(root, path)| {
            let leaf = root.join(path.trim_start_matches('/'));
            let ancestors = leaf.ancestors().take_while(|dir| dir.starts_with(&root));
            ancestors.map(Path::to_path_buf).collect::<Vec<_>>()
        })
        .collect()
}

fn user_processes() -> Option<Limit> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find(|l| l.starts_with("Max processes"))?;
    Some(Limit {
        name: "ulimit -u (RLIMIT_NPROC)".into(),
        max: line.split_whitespace().nth(2)?.parse().ok()?,
        used: threads_running()?,
    })
}

fn system_threads() -> Option<Limit> {
    Some(Limit {
        name: "kernel.threads-max".into(),
        max: number(Path::new("/proc/sys/kernel/threads-max"))?,
        used: threads_running()?,
    })
}

fn pid_max() -> Option<Limit> {
    Some(Limit {
        name: "kernel.pid_max".into(),
        max: number(Path::new("/proc/sys/kernel/pid_max"))?,
        used: threads_running()?,
    })
}

/// Threads of the whole machine: the 457 of `0.52 0.58 0.59 3/457 11837`.
fn threads_running() -> Option<u64> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    let (_, total) = load.split_whitespace().nth(3)?.split_once('/')?;
    total.parse().ok()
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pids_limits_are_sought_up_to_the_root() {
        let paths = |text: &str| -> Vec<String> {
            let directories = pids_directories(text);
            directories
                .iter()
                .map(|d| d.display().to_string())
                .collect()
        };
        assert_eq!(
            paths("5:cpu,cpuacct:/x\n8:pids:/a/b\n"),
            [
                "/sys/fs/cgroup/pids/a/b",
                "/sys/fs/cgroup/pids/a",
                "/sys/fs/cgroup/pids"
            ]
        );
        assert_eq!(
            paths("0::/user\n"),
            ["/sys/fs/cgroup/user", "/sys/fs/cgroup"]
        );
    }

    #[test]
    fn too_many_memory_maps_are_refused_before_anything_is_created() {
        let refused = check_memory_maps(1 << 40).unwrap_err().to_string();
        assert!(refused.contains("vm.max_map_count"), "{refused}");
    }
}
