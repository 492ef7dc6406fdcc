//! What `/proc` says of one process or thread: its `stat`, `status` and `sched` files.

use crate::{ProbeError, Result, cpu_list};

/// A scheduling policy with its static priority (0 for all but fifo and rr).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    pub class: PolicyClass,
    pub priority: u32,
}

/// Scheduling classes of `sched(7)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyClass {
    Other,
    Batch,
    Idle,
    Fifo,
    Rr,
    Deadline,
    Ext,
}

/// The fields of `/proc/PID/stat` that are used here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    pub pid: u32,
    /// At most 15 characters.
    pub name: String,
    /// `R`, `S`, `D`, `Z`, …
    pub state: char,
    pub parent: u32,
    pub group: u32,
    /// A thread of the kernel.
    pub is_kernel: bool,
    pub threads: u32,
    pub nice: i32,
    /// User and system time of all its threads, those that ended included, in ticks of `USER_HZ`.
    pub cpu_ticks: u64,
    /// The same of its children that have ended and that it has waited for, with theirs.
    pub children_ticks: u64,
    /// Start after boot, in ticks of `USER_HZ`; together with the number it identifies a task uniquely.
    pub started_ticks: u64,
    pub rss_pages: u64,
    pub policy: Option<Policy>,
}

/// Among the flags of a task: a thread of the kernel (`PF_KTHREAD`).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Parses `/proc/PID/stat`. The name may hold spaces and parentheses: it ends at the last one.
pub fn parse_stat(text: &str) -> Result<Stat> {
    let wrong = || ProbeError::syntax("stat", text);
    let open = text.find('(').ok_or_else(wrong)?;
    let close = text.rfind(')').ok_or_else(wrong)?;
    let fields: Vec<&str> = text[close + 1..].split_ascii_whitespace().collect();
    // Field numbers as in proc(5), which counts from 1; the state is field 3.
    let field = |number: usize| fields.get(number - 3).copied().ok_or_else(wrong);
    fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
        text.parse().ok()
    }
    let flags: u64 = number(field(9)?).ok_or_else(wrong)?;
    let user_ticks: u64 = number(field(14)?).ok_or_else(wrong)?;
    let system_ticks: u64 = number(field(15)?).ok_or_else(wrong)?;
    let children_user_ticks: u64 = number(field(16)?).ok_or_else(wrong)?;
    let children_system_ticks: u64 = number(field(17)?).ok_or_else(wrong)?;
    let policy_number: u32 = number(field(41)?).ok_or_else(wrong)?;
    let priority: u32 = number(field(40)?).ok_or_else(wrong)?;
    Ok(Stat {
        pid: number(text[..open].trim()).ok_or_else(wrong)?,
        name: text[open + 1..close].to_owned(),
        state: field(3)?.chars().next().ok_or_else(wrong)?,
        parent: number(field(4)?).ok_or_else(wrong)?,
        group: number(field(5)?).ok_or_else(wrong)?,
        is_kernel: flags & KERNEL_THREAD != 0,
        nice: number(field(19)?).ok_or_else(wrong)?,
        cpu_ticks: user_ticks + system_ticks,
        children_ticks: children_user_ticks + children_system_ticks,
        threads: number(field(20)?).ok_or_else(wrong)?,
        started_ticks: number(field(22)?).ok_or_else(wrong)?,
        rss_pages: number(field(24)?).ok_or_else(wrong)?,
        policy: policy(policy_number, priority),
    })
}

/// The fields of `/proc/PID/status` that are used here; zombies lack the memory fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    pub cpus_allowed: Option<Vec<u32>>,
    pub voluntary_switches: Option<u64>,
    pub involuntary_switches: Option<u64>,
    pub rss_bytes: Option<u64>,
    pub rss_bytes_max: Option<u64>,
}

/// Parses `/proc/PID/status`.
pub fn parse_status(text: &str) -> Result<Status> {
    let mut status = Status::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        let number = || value.parse::<u64>().ok();
        let bytes = || {
            value
                .strip_suffix(" kB")?
                .parse::<u64>()
                .ok()
                .map(|kb| kb * 1024)
        };
        match key {
            "Cpus_allowed_list" => status.cpus_allowed = Some(cpu_list::parse(value)?),
            "voluntary_ctxt_switches" => status.voluntary_switches = number(),
            "nonvoluntary_ctxt_switches" => status.involuntary_switches = number(),
            "VmRSS" => status.rss_bytes = bytes(),
            "VmHWM" => status.rss_bytes_max = bytes(),
            _ => {}
        }
    }
    Ok(status)
}

/// Migrations between CPUs, from `/proc/PID/task/TID/sched`; absent without `CONFIG_SCHED_DEBUG`.
pub fn parse_sched_migrations(text: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix("se.nr_migrations"))
        .and_then(|rest| rest.trim_start_matches([' ', ':']).trim().parse().ok())
}

/// The policy that the kernel's number means; none for one that is not known.
pub fn policy(number: u32, priority: u32) -> Option<Policy> {
    let class = match number {
        0 => PolicyClass::Other,
        1 => PolicyClass::Fifo,
        2 => PolicyClass::Rr,
        3 => PolicyClass::Batch,
        5 => PolicyClass::Idle,
        6 => PolicyClass::Deadline,
        7 => PolicyClass::Ext,
        _ => return None,
    };
    Some(Policy { class, priority })
}

/// The kernel's number of a class.
pub fn policy_number(class: PolicyClass) -> i32 {
    match class {
        PolicyClass::Other => 0,
        PolicyClass::Fifo => 1,
        PolicyClass::Rr => 2,
        PolicyClass::Batch => 3,
        PolicyClass::Idle => 5,
        PolicyClass::Deadline => 6,
        PolicyClass::Ext => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "7172 (a (b) c) S 7168 7172 7168 0 -1 4194304 1017 0 0 0 12 3 6 5 25 5 4 0 \
        93001 4538368 912 18446744073709551615 94 95 140 0 0 0 0 0 0 0 0 0 17 1 7 2 0 0 0 96 97 98 \
        140 140 140 140 0\n";

    const STATUS: &str = "Name:\tbash\nUmask:\t0022\nState:\tS (sleeping)\nVmHWM:\t    3584 kB\n\
        VmRSS:\t    3456 kB\nThreads:\t1\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n\
        Mems_allowed_list:\t0\nvoluntary_ctxt_switches:\t43\nnonvoluntary_ctxt_switches:\t8\n";

    const SCHED: &str = "bash (5884, #threads: 1)\n\
        -------------------------------------------------------------------\n\
        se.exec_start                                :        923940.130181\n\
        se.nr_migrations                             :                   10\n\
        nr_switches                                  :                   51\n";

    #[test]
    fn stat_with_a_name_that_tries_to_confuse() {
        let stat = parse_stat(STAT).unwrap();
        assert_eq!(stat.name, "a (b) c");
        assert_eq!((stat.pid, stat.parent, stat.group), (7172, 7168, 7172));
        assert_eq!((stat.nice, stat.threads, stat.started_ticks), (5, 4, 93001));
        assert_eq!((stat.state, stat.rss_pages), ('S', 912));
        assert_eq!(stat.cpu_ticks, 12 + 3);
        assert_eq!(stat.children_ticks, 6 + 5);
        assert!(!stat.is_kernel);
        let policy = stat.policy.unwrap();
        assert_eq!((policy.class, policy.priority), (PolicyClass::Rr, 7));
    }

    #[test]
    fn stat_of_a_thread_of_the_kernel() {
        let zeros = "0 ".repeat(41);
        let stat = parse_stat(&format!("30 (kworker/0:1) I 2 0 0 0 -1 69238880 {zeros}")).unwrap();
        assert!(stat.is_kernel);
    }

    #[test]
    fn stat_that_is_torn() {
        assert!(parse_stat("7172 (bash) S 7168").is_err());
        assert!(parse_stat("").is_err());
    }

    #[test]
    fn status_of_a_living_process() {
        let status = parse_status(STATUS).unwrap();
        assert_eq!(status.cpus_allowed, Some(vec![0, 1]));
        assert_eq!(status.voluntary_switches, Some(43));
        assert_eq!(status.involuntary_switches, Some(8));
        assert_eq!(status.rss_bytes, Some(3456 * 1024));
        assert_eq!(status.rss_bytes_max, Some(3584 * 1024));
    }

    #[test]
    fn status_of_a_zombie_lacks_memory() {
        let status = parse_status("Name:\ttrue\nState:\tZ (zombie)\n").unwrap();
        assert_eq!(status.rss_bytes_max, None);
    }

    #[test]
    fn sched_gives_migrations() {
        assert_eq!(parse_sched_migrations(SCHED), Some(10));
        assert_eq!(parse_sched_migrations(""), None);
    }

    #[test]
    fn policies_go_both_ways() {
        for number in [0, 1, 2, 3, 5, 6, 7] {
            let class = policy(number, 0).unwrap().class;
            assert_eq!(policy_number(class), number as i32);
        }
        assert_eq!(policy(4, 0), None);
    }
}
