//! Processes outside the trial: which of them used the CPUs meanwhile.

use std::collections::BTreeMap;

use concurve_clock as clock;
use concurve_probe::proc_fs::ProcFs;
use concurve_probe::task::{PolicyClass, Stat};
use concurve_wire::record::ForeignProcess;

/// CPU time that one pass over the processes may take; there is one before the trial, and one after it
/// if others used the machine.
const PASS_NS_MAX: u64 = 1_400_000;
/// So many processes are named.
const NAMED_MAX: usize = 3;
/// The parent of all threads of the kernel.
const KTHREADD: u32 = 2;

/// CPU time of processes at one time.
#[derive(Debug, Default)]
pub struct Others {
    seen: BTreeMap<u32, Stat>,
    /// How many there were.
    total: usize,
}

/// What others used between two times.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Those that used most, most first.
    pub most: Vec<ForeignProcess>,
    /// CPU time at low priority, of all of them.
    pub low_priority_ns: u64,
    /// CPU time of the kernel's threads, in whole ticks of each. They are none of these processes.
    pub kernel_ns: u64,
    /// Why processes may be missing.
    pub missing: Option<String>,
}

impl Others {
    /// Reads all processes but this one, or as many as the time is enough for.
    pub fn take(proc_fs: &ProcFs) -> Self {
        Self::take_within(proc_fs, PASS_NS_MAX)
    }

    fn take_within(proc_fs: &ProcFs, ns_max: u64) -> Self {
        let begin_ns = clock::process_cpu_ns();
        let mut pids = proc_fs.processes().unwrap_or_default();
        pids.retain(|pid| *pid != std::process::id());
        let mut seen = BTreeMap::new();
        for pid in pids.iter().copied() {
            if clock::process_cpu_ns() - begin_ns >= ns_max {
                break;
            }
            if let Ok(stat) = proc_fs.stat(pid) {
                seen.insert(pid, stat);
            }
        }
        Self {
            seen,
            total: pids.len(),
        }
    }

    /// Leaves out the processes of attached roles.
    pub fn without(mut self, is_own: impl Fn(u32) -> bool) -> Self {
        let before = self.seen.len();
        self.seen.retain(|pid, _| !is_own(*pid));
        self.total -= before - self.seen.len();
        self
    }

    fn is_complete(&self) -> bool {
        // Some end while they are read.
        self.seen.len() * 10 >= self.total * 9
    }

    /// What was used since `earlier`.
    pub fn since(&self, earlier: &Self, tick_ns: u64) -> Used {
        let all: Vec<(&Stat, u64)> = self
            .seen
            .values()
            .filter_map(|now| {
                let before = match earlier.seen.get(&now.pid) {
                    Some(before) if before.started_ticks == now.started_ticks => before.cpu_ticks,
                    // Born meanwhile, if all were read that lived then.
                    _ if earlier.is_complete() => 0,
                    _ => return None,
                };
                let ticks = now.cpu_ticks.saturating_sub(before);
                (ticks > 0).then_some((now, ticks * tick_ns))
            })
            .collect();
        let (kernel, mut used): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(stat, _)| is_kernel(stat));
        used.sort_by_key(|(stat, cpu_ns)| (std::cmp::Reverse(*cpu_ns), stat.pid));
        let low = used.iter().filter(|(stat, _)| is_low_priority(stat));
        let least = [earlier, self].into_iter().find(|it| !it.is_complete());
        Used {
            low_priority_ns: low.map(|(_, cpu_ns)| cpu_ns).sum(),
            kernel_ns: kernel.iter().map(|(_, cpu_ns)| cpu_ns).sum(),
            missing: match least {
                Some(pass) => Some(format!(
                    "{} of {} processes were read in {:.1} ms",
                    pass.seen.len(),
                    pass.total,
                    PASS_NS_MAX as f64 / 1e6
                )),
                None if used.is_empty() => {
                    Some("those that used the CPUs have ended, or are not visible here".into())
                }
                None => None,
            },
            most: used.into_iter().take(NAMED_MAX).map(named).collect(),
        }
    }
}

fn named((stat, cpu_ns): (&Stat, u64)) -> ForeignProcess {
    ForeignProcess {
        pid: stat.pid,
        name: stat.name.clone(),
        nice: stat.nice,
        cpu_ns,
    }
}

fn is_kernel(stat: &Stat) -> bool {
    stat.pid == KTHREADD || stat.parent == KTHREADD
}

fn is_low_priority(stat: &Stat) -> bool {
    let is_idle = stat.policy.is_some_and(|it| it.class == PolicyClass::Idle);
    stat.nice > 0 || is_idle
}

#[cfg(test)]
mod tests {
    //! A made-up `/proc`.

    use std::path::PathBuf;

    use super::*;

    const TICK_NS: u64 = 10_000_000;

    struct Made(PathBuf);

    impl Made {
        fn new(name: &str) -> Self {
            let name = format!("concurve-others-{name}-{}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }

        fn process(&self, pid: u32, parent: u32, nice: i32, cpu: (u64, u64), started: u64) {
            let folder = self.0.join(pid.to_string());
            std::fs::create_dir_all(&folder).unwrap();
            let (user, system) = cpu;
            let text = format!(
                "{pid} (hog {pid}) R {parent} 1 1 0 -1 0 0 0 0 0 {user} {system} 0 0 20 {nice} 1 0 \
                 {started} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
            );
            std::fs::write(folder.join("stat"), text).unwrap();
        }

        fn take(&self) -> Others {
            Others::take_within(&ProcFs::new(&self.0), u64::MAX)
        }
    }

    impl Drop for Made {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn pids(used: &Used) -> Vec<u32> {
        used.most.iter().map(|it| it.pid).collect()
    }

    #[test]
    fn those_that_used_most_are_named() {
        let made = Made::new("most");
        for pid in 10..15 {
            made.process(pid, 1, 0, (100, 0), 5);
        }
        let before = made.take();
        made.process(10, 1, 0, (103, 0), 5);
        made.process(11, 1, 19, (120, 5), 5);
        made.process(12, 1, 0, (140, 0), 5);
        made.process(13, 1, 5, (101, 0), 5);
        let used = made.take().since(&before, TICK_NS);
        assert_eq!(pids(&used), [12, 11, 10]);
        let hog = &used.most[1];
        assert_eq!((hog.name.as_str(), hog.nice), ("hog 11", 19));
        assert_eq!(hog.cpu_ns, 25 * TICK_NS);
        assert_eq!(used.low_priority_ns, 26 * TICK_NS, "those not named too");
        assert_eq!(used.missing, None);
    }

    #[test]
    fn a_process_that_was_born_meanwhile_counts_whole() {
        let made = Made::new("born");
        made.process(10, 1, 0, (100, 0), 5);
        let before = made.take();
        made.process(10, 1, 0, (7, 0), 90);
        made.process(11, 1, 0, (8, 0), 91);
        let used = made.take().since(&before, TICK_NS);
        let times: Vec<u64> = used.most.iter().map(|it| it.cpu_ns / TICK_NS).collect();
        assert_eq!((pids(&used), times), (vec![11, 10], vec![8, 7]));
    }

    #[test]
    fn the_kernels_threads_are_no_processes_outside() {
        let made = Made::new("kernel");
        made.process(30, KTHREADD, 0, (1, 0), 5);
        let before = made.take();
        made.process(30, KTHREADD, 0, (9, 0), 5);
        let used = made.take().since(&before, TICK_NS);
        assert_eq!(pids(&used), [0; 0]);
        assert_eq!(used.kernel_ns, 8 * TICK_NS);
        assert!(used.missing.unwrap().contains("ended, or are not visible"));
    }

    #[test]
    fn a_pass_that_was_cut_short_says_so_and_invents_nothing() {
        let made = Made::new("cut");
        made.process(10, 1, 0, (100, 0), 5);
        let before = Others::take_within(&ProcFs::new(&made.0), 0);
        let used = made.take().since(&before, TICK_NS);
        assert_eq!(
            pids(&used),
            [0; 0],
            "whether it used all of it now, nobody knows"
        );
        assert!(
            used.missing
                .unwrap()
                .starts_with("0 of 1 processes were read")
        );
    }
}
