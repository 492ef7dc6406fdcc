//! The quota of CPU time that a control group has, of either version, and how often it held the group
//! back.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// How often a quota held a group back so far, and for how long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which the group had something to run.
    pub periods: u64,
    /// Periods in which it used up its quota.
    pub throttled: u64,
    /// How long it was held back, summed over CPUs.
    pub throttled_ns: u64,
}

impl Throttling {
    /// What came since an earlier reading.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            periods: self.periods.saturating_sub(earlier.periods),
            throttled: self.throttled.saturating_sub(earlier.throttled),
            throttled_ns: self.throttled_ns.saturating_sub(earlier.throttled_ns),
        }
    }
}

/// Folders of control groups, one line a hierarchy: `0::/path` of version 2, and the line of version 1
/// that has the controller `cpu`.
pub fn parse_groups(text: &str) -> (Option<&str>, Option<&str>) {
    let mut unified = None;
    let mut cpu = None;
    for line in text.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        if controllers.is_empty() {
            unified = Some(path);
        } else if controllers.split(',').any(|name| name == "cpu") {
            cpu = Some(path);
        }
    }
    (unified, cpu)
}

/// The CPUs' worth of time that a group may use: `cpu.max` is `max 100000`, or quota and period.
pub fn parse_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    share(quota.parse().ok()?, period.parse().ok()?)
}

/// The same of version 1, whose quota is -1 where there is none.
pub fn parse_quota(quota: &str, period: &str) -> Option<f64> {
    share(quota.trim().parse().ok()?, period.trim().parse().ok()?)
}

fn share(quota_us: i64, period_us: i64) -> Option<f64> {
    (quota_us > 0 && period_us > 0).then(|| quota_us as f64 / period_us as f64)
}

/// `cpu.stat`: version 2 counts `throttled_usec`, version 1 `throttled_time` in nanoseconds. None if it
/// lacks them.
pub fn parse_stat(text: &str) -> Option<Throttling> {
    let value = |name: &str| -> Option<u64> {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(key, _)| *key == name)?.1.trim().parse().ok()
    };
    Some(Throttling {
        periods: value("nr_periods")?,
        throttled: value("nr_throttled")?,
        throttled_ns: value("throttled_time")
            .or_else(|| value("throttled_usec").map(|us| us.saturating_mul(1000)))?,
    })
}

/// Where control groups are mounted.
#[derive(Debug, Clone)]
pub struct Groups {
    root: PathBuf,
}

impl Default for Groups {
    fn default() -> Self {
        Self::new("/sys/fs/cgroup")
    }
}

impl Groups {
    /// With another root for tests.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The groups with a quota that a process is in, itself or through a group above: text is that of
    /// its `/proc/PID/cgroup`. A process of a container sees no group above that of the container.
    pub fn with_quota(&self, text: &str) -> BTreeSet<PathBuf> {
        let (unified, cpu) = parse_groups(text);
        let mounts = [
            (unified, self.root.clone()),
            (unified, self.root.join("unified")),
            (cpu, self.root.join("cpu")),
            (cpu, self.root.join("cpu,cpuacct")),
        ];
        let mut found = BTreeSet::new();
        for (path, mount) in mounts {
            let Some(path) = path else { continue };
            // A path that leads out of the namespace is not visible here.
            if path.contains("..") {
                continue;
            }
            let mut folder = Some(Path::new(path.trim_start_matches('/')));
            while let Some(below) = folder {
                let folder_here = mount.join(below);
                if quota(&folder_here).is_some() {
                    found.insert(folder_here);
                }
                folder = below.parent();
            }
        }
        found
    }
}

/// The CPUs' worth of time that a group itself may use, if it has a quota.
pub fn quota(folder: &Path) -> Option<f64> {
    let text = |name: &str| fs::read_to_string(folder.join(name)).ok();
    if let Some(max) = text("cpu.max") {
        return parse_max(&max);
    }
    parse_quota(&text("cpu.cfs_quota_us")?, &text("cpu.cfs_period_us")?)
}

/// How often the quota of a group held it back so far; none if the group is gone.
pub fn throttling(folder: &Path) -> Option<Throttling> {
    parse_stat(&fs::read_to_string(folder.join("cpu.stat")).ok()?)
}

#[cfg(test)]
mod tests {
    //! Texts of kernels 5.15 (version 2) and 6.18 (version 1).

    use super::*;

    const V1: &str = "12:memory:/user\n3:cpuset:/\n1:cpu,cpuacct:/build/one\n0::/user.slice\n";

    #[test]
    fn reads_the_groups_of_both_versions() {
        assert_eq!(parse_groups(V1), (Some("/user.slice"), Some("/build/one")));
        assert_eq!(parse_groups("0::/a:b\n"), (Some("/a:b"), None));
        assert_eq!(parse_groups("2:cpuacct:/\nodd\n"), (None, None));
    }

    #[test]
    fn reads_quotas() {
        assert_eq!(parse_max("150000 100000\n"), Some(1.5));
        assert_eq!(parse_max("max 100000\n"), None);
        assert_eq!(parse_quota("50000\n", "100000\n"), Some(0.5));
        assert_eq!(parse_quota("-1\n", "100000\n"), None);
        assert_eq!(parse_max("150000 0"), None);
    }

    #[test]
    fn reads_how_often_a_group_was_held_back() {
        let v2 = "usage_usec 90\nuser_usec 80\nnr_periods 12\nnr_throttled 7\nthrottled_usec 350000\n\
                  nr_bursts 0\n";
        let expected = Throttling {
            periods: 12,
            throttled: 7,
            throttled_ns: 350_000_000,
        };
        assert_eq!(parse_stat(v2), Some(expected));
        let v1 = "nr_periods 12\nnr_throttled 7\nthrottled_time 350000000\n";
        assert_eq!(parse_stat(v1), Some(expected));
        assert_eq!(parse_stat("usage_usec 90\n"), None);
        assert_eq!(expected.since(&expected), Throttling::default());
    }

    #[test]
    fn finds_the_quota_of_a_group_above() {
        let root = std::env::temp_dir().join(format!("concurve-quota-{}", std::process::id()));
        let limited = root.join("cpu/build");
        fs::create_dir_all(limited.join("one")).unwrap();
        for (name, text) in [
            ("cpu.cfs_quota_us", "100000"),
            ("cpu.cfs_period_us", "100000"),
        ] {
            fs::write(limited.join(name), text).unwrap();
        }
        for (name, text) in [("cpu.cfs_quota_us", "-1"), ("cpu.cfs_period_us", "100000")] {
            fs::write(limited.join("one").join(name), text).unwrap();
        }
        let groups = Groups::new(&root);
        let found: Vec<PathBuf> = groups
            .with_quota("1:cpu:/build/one\n")
            .into_iter()
            .collect();
        assert_eq!(found, std::slice::from_ref(&limited));
        assert!(groups.with_quota("1:cpu:/elsewhere\n").is_empty());
        assert!(groups.with_quota("1:cpu:/../build\n").is_empty());
        fs::create_dir_all(root.join("two")).unwrap();
        fs::write(root.join("two/cpu.max"), "50000 100000\n").unwrap();
        assert_eq!(groups.with_quota("0::/two\n").len(), 1);
        assert_eq!(throttling(&limited), None);
        fs::remove_dir_all(&root).unwrap();
    }
}
