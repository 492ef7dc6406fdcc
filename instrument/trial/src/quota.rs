//! The quota of CPU time of a role: the control groups of its processes, and for how long each was held
//! back meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use concurve_clock as clock;
use concurve_probe::cpu_quota::{self, Groups, Throttling};
use concurve_probe::proc_fs::ProcFs;
use concurve_wire::record::CpuQuota;

/// Processes of a role whose groups are looked at.
const PROCESSES_MAX: usize = 8;
/// After the first samples, groups are looked for in every so many: a process may move.
const EVERY: u32 = 16;

/// The groups with a quota that processes of a role were seen in.
#[derive(Debug, Default)]
pub struct QuotaWatch {
    groups: Groups,
    samples: u32,
    /// Texts of `/proc/PID/cgroup` that were looked at.
    known: BTreeSet<String>,
    seen: BTreeMap<PathBuf, Seen>,
    looking_cpu_ns: u64,
}

/// A group, as first and as last read.
#[derive(Debug)]
struct Seen {
    cpus: f64,
    begin: Throttling,
    last: Throttling,
}

impl QuotaWatch {
    /// With other folders, for tests.
    #[cfg(test)]
    fn of(groups: Groups) -> Self {
        Self {
            groups,
            ..Self::default()
        }
    }

    /// Takes part in a sample. The groups may be gone when the role has ended, so they are read each time.
    pub fn sample(&mut self, processes: impl Iterator<Item = u32>, proc_fs: &ProcFs) {
        self.samples += 1;
        if self.samples.is_power_of_two() || self.samples.is_multiple_of(EVERY) {
            for pid in processes.take(PROCESSES_MAX) {
                if let Some(text) = proc_fs.control_groups(pid) {
                    self.look(text);
                }
            }
        }
        self.read();
    }

    fn look(&mut self, text: String) {
        if self.known.contains(&text) {
            return;
        }
        let cpu_before = clock::thread_cpu_ns();
        for folder in self.groups.with_quota(&text) {
            let (Some(cpus), Some(begin)) =
                (cpu_quota::quota(&folder), cpu_quota::throttling(&folder))
            else {
                continue;
            };
            self.seen.entry(folder).or_insert(Seen {
                cpus,
                begin,
                last: begin,
            });
        }
        self.known.insert(text);
        self.looking_cpu_ns += clock::thread_cpu_ns() - cpu_before;
    }

    /// CPU time that went into looking at groups for the first time. It comes once, so it is no part of what
    /// samples may cost.
    pub fn take_looking_cpu_ns(&mut self) -> u64 {
        std::mem::take(&mut self.looking_cpu_ns)
    }

    fn read(&mut self) {
        for (folder, seen) in &mut self.seen {
            seen.last = cpu_quota::throttling(folder).unwrap_or(seen.last);
        }
    }

    /// The group that was held back longest; of groups that were not, the one with the least quota.
    pub fn finish(&mut self) -> Option<CpuQuota> {
        self.read();
        let groups = self.seen.values().map(|seen| {
            let spent = seen.last.since(&seen.begin);
            CpuQuota {
                cpus: seen.cpus,
                periods: spent.periods,
                throttled: spent.throttled,
                throttled_ns: spent.throttled_ns,
            }
        });
        groups.max_by(|one, other| {
            let by_time = one.throttled_ns.cmp(&other.throttled_ns);
            by_time.then(other.cpus.total_cmp(&one.cpus))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_group_that_held_it_back_longest_counts_from_its_first_reading() {
        let root = std::env::temp_dir().join(format!("concurve-watch-{}", std::process::id()));
        let stat = |throttled: u64| {
            format!("nr_periods 9\nnr_throttled {throttled}\nthrottled_usec {throttled}000\n")
        };
        for (name, throttled) in [("wide", 1), ("wide/narrow", 4)] {
            fs::create_dir_all(root.join(name)).unwrap();
            fs::write(root.join(name).join("cpu.max"), "100000 100000\n").unwrap();
            fs::write(root.join(name).join("cpu.stat"), stat(throttled)).unwrap();
        }
        let mut watch = QuotaWatch::of(Groups::new(&root));
        assert_eq!(watch.finish(), None);
        watch.look("0::/wide/narrow\n".into());
        watch.look("0::/wide/narrow\n".into());
        assert_eq!(watch.seen.len(), 2);
        fs::write(root.join("wide/narrow/cpu.stat"), stat(7)).unwrap();
        watch.read();
        // The group may be removed before the trial ends.
        fs::remove_dir_all(root.join("wide/narrow")).unwrap();
        let found = watch.finish().unwrap();
        assert_eq!((found.throttled, found.throttled_ns), (3, 3_000_000));
        assert_eq!(found.cpus, 1.0);
        fs::remove_dir_all(&root).unwrap();
    }
}
