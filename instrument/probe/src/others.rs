//! Other processes: which of them used the CPUs between two times.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use concurve_clock as clock;

use crate::proc_fs::ProcFs;
use crate::process;
use crate::task::{PolicyClass, Stat};

/// CPU time that one pass over the processes may take. There is one at the begin, and one at the end
/// if others used the machine, in which the files of those that did are read as well.
const PASS_NS_MAX: u64 = 1_400_000;
/// It is asked what a pass has taken once in so many processes.
const CLOCK_EVERY: usize = 16;
/// CPU time of processes at one time, by the clock that the kernel has of each: to ask it takes a
/// twentieth of the time that reading a file of `/proc` takes.
#[derive(Debug, Default)]
pub struct Others {
    /// In ns, by the number of the process.
    cpu_ns: BTreeMap<u32, u64>,
    /// How many there were.
    total: usize,
    /// When, in ticks after boot.
    at_ticks: u64,
}

/// A process that used CPU time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherProcess {
    pub pid: u32,
    pub name: String,
    pub nice: i32,
    pub cpu_ns: u64,
}

/// What others used between two times.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Those that are known, the one that used most first.
    pub most: Vec<OtherProcess>,
    /// CPU time at low priority, of all of them.
    pub low_priority_ns: u64,
    /// CPU time of the kernel's threads. They are none of these processes.
    pub kernel_ns: u64,
    /// CPU time of the process that was named as the laboratory. It is none of these either.
    pub laboratory_ns: u64,
    /// Why processes may be missing.
    pub missing: Option<String>,
}

impl Others {
    /// Asks the clocks of all processes but this one, or of as many as the time is enough for.
    pub fn take(proc_fs: &ProcFs) -> Self {
        let at_ticks = clock::boottime_ns() / process::tick_ns();
        Self::take_within(proc_fs, process::cpu_ns, at_ticks, PASS_NS_MAX)
    }

    fn take_within(
        proc_fs: &ProcFs,
        cpu_ns_of: impl Fn(u32) -> Option<u64>,
        at_ticks: u64,
        ns_max: u64,
    ) -> Self {
        let mut pass = Pass::begin(ns_max);
        let own = std::process::id();
        let mut pids = proc_fs.processes().unwrap_or_default();
        pids.retain(|pid| *pid != own);
        let mut cpu_ns = BTreeMap::new();
        for pid in pids.iter().copied() {
            if pass.is_over() {
                break;
            }
            if let Some(ns) = cpu_ns_of(pid) {
                cpu_ns.insert(pid, ns);
            }
        }
        Self {
            cpu_ns,
            total: pids.len(),
            at_ticks,
        }
    }

    /// Leaves out those that are no others.
    pub fn without(mut self, is_own: impl Fn(u32) -> bool) -> Self {
        let before = self.cpu_ns.len();
        self.cpu_ns.retain(|pid, _| !is_own(*pid));
        self.total -= before - self.cpu_ns.len();
        self
    }

    fn is_complete(&self) -> bool {
        // Some end while they are read.
        self.cpu_ns.len() * 10 >= self.total * 9
    }

    /// What was used since `earlier`. `laboratory` is the process that measures, if it is known.
    pub fn since(&self, earlier: &Self, laboratory: Option<u32>, proc_fs: &ProcFs) -> Used {
        self.since_within(earlier, laboratory, proc_fs, PASS_NS_MAX)
    }

    fn since_within(
        &self,
        earlier: &Self,
        laboratory: Option<u32>,
        proc_fs: &ProcFs,
        ns_max: u64,
    ) -> Used {
        // Those that used most first: the time may not be enough to read the files of all.
        let mut busiest: Vec<(u64, u32)> = self
            .cpu_ns
            .iter()
            .map(|(pid, now)| (gained(earlier.cpu_ns.get(pid), *now), *pid))
            .filter(|(ns, _)| *ns > 0)
            .collect();
        busiest.sort_by_key(|(ns, pid)| (Reverse(*ns), *pid));
        let mut pass = Pass::begin(ns_max);
        let (mut used, mut read) = (Used::default(), 0);
        let has_autogroups = proc_fs.has_autogroups();
        for (ns, pid) in busiest.iter().copied() {
            if pass.is_over() {
                break;
            }
            read += 1;
            let Ok(mut stat) = proc_fs.stat(pid) else {
                continue;
            };
            if has_autogroups && !stat.is_kernel {
                let of_session = proc_fs.session_nice(pid).unwrap_or_default();
                stat.nice = stat.nice.max(of_session);
            }
            let Some(ns) = self.own_since(earlier, &stat, ns) else {
                continue;
            };
            if stat.is_kernel {
                used.kernel_ns += ns;
                continue;
            }
            if laboratory == Some(pid) {
                used.laboratory_ns += ns;
                continue;
            }
            if is_low_priority(&stat) {
                used.low_priority_ns += ns;
            }
            used.most.push(named(&stat, ns));
        }
        used.most.sort_by_key(|it| (Reverse(it.cpu_ns), it.pid));
        let least = [earlier, self].into_iter().find(|it| !it.is_complete());
        let took_ms = ns_max as f64 / 1e6;
        used.missing = match least {
            Some(pass) => Some(format!(
                "{} of {} processes were read in {took_ms:.1} ms",
                pass.cpu_ns.len(),
                pass.total,
            )),
            None if read < busiest.len() => Some(format!(
                "of {} processes that used the CPUs, the {read} that used most were read in \
                 {took_ms:.1} ms",
                busiest.len(),
            )),
            None if used.most.is_empty() => {
                Some("those that used the CPUs have ended, or are not visible here".into())
            }
            None => None,
        };
        used
    }

    /// What a process used since `earlier`, of which the clock of its number says `ns`; none if that
    /// is not known.
    fn own_since(&self, earlier: &Self, stat: &Stat, ns: u64) -> Option<u64> {
        let is_new = stat.started_ticks > earlier.at_ticks;
        match earlier.cpu_ns.contains_key(&stat.pid) {
            // The number was another process's then.
            true if is_new => self.cpu_ns.get(&stat.pid).copied(),
            true => Some(ns),
            // Born meanwhile, if not merely left out of the earlier pass.
            false => (is_new || earlier.is_complete()).then_some(ns),
        }
    }
}

/// What a clock has gained. One that is behind is that of another process, which is new.
fn gained(before_ns: Option<&u64>, now_ns: u64) -> u64 {
    match before_ns {
        Some(before_ns) if *before_ns <= now_ns => now_ns - before_ns,
        _ => now_ns,
    }
}

/// A pass over processes that may take so much CPU time.
struct Pass {
    begin_ns: u64,
    ns_max: u64,
    count: usize,
}

impl Pass {
    fn begin(ns_max: u64) -> Self {
        Self {
            begin_ns: clock::process_cpu_ns(),
            ns_max,
            count: 0,
        }
    }

    /// To be asked before each process.
    fn is_over(&mut self) -> bool {
        let is_due = self.count.is_multiple_of(CLOCK_EVERY);
        self.count += 1;
        is_due && clock::process_cpu_ns() - self.begin_ns >= self.ns_max
    }
}

fn named(stat: &Stat, cpu_ns: u64) -> OtherProcess {
    OtherProcess {
        pid: stat.pid,
        name: stat.name.clone(),
        nice: stat.nice,
        cpu_ns,
    }
}

fn is_low_priority(stat: &Stat) -> bool {
    let is_idle = stat.policy.is_some_and(|it| it.class == PolicyClass::Idle);
    stat.nice > 0 || is_idle
}

#[cfg(test)]
mod tests {
    //! A made-up `/proc`, with made-up clocks.

    use std::collections::HashMap;
    use std::path::PathBuf;

    use super::*;

    const MS: u64 = 1_000_000;
    /// Flags of tasks.
    const USER: u64 = 0x0040_0000;
    const KERNEL: u64 = 0x0420_8040;
    /// The process that measures.
    const LABORATORY: u32 = 9000;
    /// The time of the earlier pass.
    const BEFORE_TICKS: u64 = 50;

    struct Made {
        root: PathBuf,
        clocks: HashMap<u32, u64>,
    }

    impl Made {
        fn new(name: &str) -> Self {
            let name = format!("concurve-others-{name}-{}", std::process::id());
            Self {
                root: std::env::temp_dir().join(name),
                clocks: HashMap::new(),
            }
        }

        fn process(&mut self, pid: u32, flags: u64, nice: i32, cpu_ms: u64, started: u64) {
            self.clocks.insert(pid, cpu_ms * MS);
            let folder = self.root.join(pid.to_string());
            std::fs::create_dir_all(&folder).unwrap();
            let text = format!(
                "{pid} (hog {pid}) R 1 1 1 0 -1 {flags} 0 0 0 0 0 0 0 0 20 {nice} 1 0 {started} 0 \
                 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
            );
            std::fs::write(folder.join("stat"), text).unwrap();
        }

        fn take(&self) -> Others {
            self.take_within(u64::MAX)
        }

        fn take_within(&self, ns_max: u64) -> Others {
            let clock_of = |pid: u32| self.clocks.get(&pid).copied();
            Others::take_within(&self.proc_fs(), clock_of, BEFORE_TICKS, ns_max)
        }

        fn since(&self, before: &Others) -> Used {
            self.take()
                .since_within(before, Some(LABORATORY), &self.proc_fs(), u64::MAX)
        }

        fn proc_fs(&self) -> ProcFs {
            ProcFs::new(&self.root)
        }
    }

    impl Drop for Made {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.root);
        }
    }

    fn used_ms(used: &Used) -> Vec<(u32, u64)> {
        used.most
            .iter()
            .map(|it| (it.pid, it.cpu_ns / MS))
            .collect()
    }

    #[test]
    fn those_that_used_most_are_named() {
        let mut made = Made::new("most");
        for pid in 10..15 {
            made.process(pid, USER, 0, 1000, 5);
        }
        let before = made.take();
        made.process(10, USER, 0, 1030, 5);
        made.process(11, USER, 19, 1250, 5);
        made.process(12, USER, 0, 1400, 5);
        made.process(13, USER, 5, 1010, 5);
        let used = made.since(&before);
        assert_eq!(used_ms(&used), [(12, 400), (11, 250), (10, 30), (13, 10)]);
        let hog = &used.most[1];
        assert_eq!((hog.name.as_str(), hog.nice), ("hog 11", 19));
        assert_eq!(used.low_priority_ns, 260 * MS);
        assert_eq!(used.missing, None);
    }

    #[test]
    fn the_priority_of_a_session_counts_where_the_scheduler_goes_by_sessions() {
        let mut made = Made::new("sessions");
        for pid in [10, 11] {
            made.process(pid, USER, 0, 1000, 5);
        }
        let before = made.take();
        for pid in [10, 11] {
            made.process(pid, USER, 0, 1300, 5);
        }
        std::fs::write(made.root.join("11/autogroup"), "/autogroup-7 nice 19\n").unwrap();
        assert_eq!(made.since(&before).low_priority_ns, 0, "it is off");
        let kernel = made.root.join("sys/kernel");
        std::fs::create_dir_all(&kernel).unwrap();
        std::fs::write(kernel.join("sched_autogroup_enabled"), "1\n").unwrap();
        let used = made.since(&before);
        assert_eq!(used.low_priority_ns, 300 * MS);
        let nice: Vec<_> = used.most.iter().map(|it| (it.pid, it.nice)).collect();
        assert_eq!(nice, [(10, 0), (11, 19)]);
    }

    #[test]
    fn a_process_that_was_born_meanwhile_counts_whole() {
        let mut made = Made::new("born");
        made.process(10, USER, 0, 1000, 5);
        made.process(12, USER, 0, 10, 5);
        let before = made.take();
        made.process(10, USER, 0, 70, 90);
        made.process(11, USER, 0, 80, 91);
        // A new process of a number that was there, which has used more than the old one.
        made.process(12, USER, 0, 60, 92);
        let used = made.since(&before);
        assert_eq!(used_ms(&used), [(11, 80), (10, 70), (12, 60)]);
    }

    #[test]
    fn the_kernels_threads_are_no_processes_outside() {
        let mut made = Made::new("kernel");
        made.process(30, KERNEL, 0, 10, 5);
        let before = made.take();
        made.process(30, KERNEL, 0, 90, 5);
        let used = made.since(&before);
        assert_eq!(used_ms(&used), []);
        assert_eq!(used.kernel_ns, 80 * MS);
        assert!(used.missing.unwrap().contains("ended, or are not visible"));
    }

    #[test]
    fn the_laboratory_is_no_stranger() {
        let mut made = Made::new("laboratory");
        made.process(LABORATORY, USER, 0, 10, 5);
        made.process(11, USER, 0, 10, 5);
        let before = made.take();
        made.process(LABORATORY, USER, 5, 90, 5);
        made.process(11, USER, 0, 30, 5);
        let used = made.since(&before);
        assert_eq!(used_ms(&used), [(11, 20)]);
        assert_eq!((used.laboratory_ns, used.low_priority_ns), (80 * MS, 0));
    }

    #[test]
    fn a_pass_that_was_cut_short_says_so_and_invents_nothing() {
        let mut made = Made::new("cut");
        made.process(10, USER, 0, 1000, 5);
        let before = made.take_within(0);
        let used = made.since(&before);
        assert_eq!(
            used_ms(&used),
            [],
            "whether it used all of it now, nobody knows"
        );
        let missing = used.missing.unwrap();
        assert!(missing.starts_with("0 of 1 processes were read"));
    }

    #[test]
    fn too_many_to_read_their_files_are_said() {
        let mut made = Made::new("many");
        made.process(10, USER, 0, 1000, 5);
        let before = made.take();
        made.process(10, USER, 0, 1500, 5);
        let used = made.take().since_within(&before, None, &made.proc_fs(), 0);
        assert_eq!(used_ms(&used), []);
        let missing = used.missing.unwrap();
        assert!(missing.starts_with("of 1 processes that used the CPUs, the 0 that used most"));
    }

    #[test]
    fn the_kernels_clocks_say_what_a_process_used() {
        // A pass with a limit may end before the parent on a busy machine, and some processes end
        // during it.
        let an_hour_ns = 3_600_000_000_000;
        let others = Others::take_within(&ProcFs::default(), process::cpu_ns, 0, an_hour_ns);
        let parent = nix::unistd::getppid().as_raw() as u32;
        assert!(others.cpu_ns[&parent] > 0);
        assert!(!others.cpu_ns.contains_key(&std::process::id()));
    }
}
