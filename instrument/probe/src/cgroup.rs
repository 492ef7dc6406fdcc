//! Processes of a cgroup, of either version.

use std::fs;
use std::path::Path;

use crate::{ProbeError, Result};

/// Numbers of the processes of a cgroup and of those below it, ascending. Nothing is written.
pub fn processes(folder: &Path) -> Result<Vec<u32>> {
    let file = folder.join("cgroup.procs");
    let text = fs::read_to_string(&file)
        .map_err(|error| ProbeError::system(format!("read {}", file.display()), error))?;
    let mut found: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    let below = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        // One that is being removed has no processes.
        found.extend(processes(&entry.path()).unwrap_or_default());
    }
    found.sort_unstable();
    found.dedup();
    // Those of other PID namespaces read as 0.
    found.retain(|pid| *pid > 0);
    Ok(found)
}

/// CPU time of all that ever ran in a cgroup of version 2 or below it, to the end of each process; none where the
/// kernel does not say it.
pub fn cpu_ns(folder: &Path) -> Option<u64> {
    let text = fs::read_to_string(folder.join("cpu.stat")).ok()?;
    let used = text
        .lines()
        .find_map(|line| line.strip_prefix("usage_usec "));
    Some(used?.parse::<u64>().ok()? * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_below_belong_to_it() {
        let root = std::env::temp_dir().join(format!("concurve-cgroup-{}", std::process::id()));
        fs::create_dir_all(root.join("workers/one")).unwrap();
        fs::write(root.join("cgroup.procs"), "30\n7\n0\n").unwrap();
        fs::write(root.join("workers/cgroup.procs"), "").unwrap();
        fs::write(root.join("workers/one/cgroup.procs"), "9\n7\n").unwrap();
        assert_eq!(processes(&root).unwrap(), [7, 9, 30]);
        assert_eq!(cpu_ns(&root), None);
        let stat = "usage_usec 4350\nuser_usec 4000\nsystem_usec 350\nnr_periods 0\n";
        fs::write(root.join("cpu.stat"), stat).unwrap();
        assert_eq!(cpu_ns(&root), Some(4_350_000));
        fs::remove_dir_all(&root).unwrap();
        assert!(
            processes(&root)
                .unwrap_err()
                .to_string()
                .contains("cgroup.procs")
        );
    }
}
