//! One task's account, as the kernel lays it out (`struct taskstats`).

use super::netlink::{self, attributes, u16_at, u32_at, u64_at};
use crate::task::{self, Policy};
use crate::{ProbeError, Result};

const TYPE_STATS: u16 = 3;
const TYPE_AGGR_PID: u16 = 4;
const TYPE_AGGR_TGID: u16 = 5;
/// `ac_flag` of a process's last task.
const AGROUP: u8 = 0x20;

/// One task's account at its exit, or a living process's so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitAccount {
    pub tid: u32,
    pub pid: u32,
    /// Its parent process; for an orphan, the subreaper.
    pub parent: u32,
    pub name: String,
    pub nice: i32,
    pub policy: Option<Policy>,
    /// The last task of its process.
    pub last: bool,
    pub cpu_ns: u64,
    pub run_queue_ns: u64,
    pub slices: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    /// Elapsed time from its start to its end.
    pub elapsed_ns: u64,
    /// Greatest resident memory of its process so far; none if it had no memory any more.
    pub rss_bytes_max: Option<u64>,
}

impl ExitAccount {
    /// All exits in the result of one read. Messages of other kinds are skipped.
    pub fn all_of(bytes: &[u8]) -> Vec<Self> {
        netlink::bodies(bytes)
            .filter_map(|body| parse(nested(body, TYPE_AGGR_PID)?))
            .collect()
    }

    /// The answer about a living process, if the layout is one that is known.
    pub fn of_process(body: &[u8]) -> Result<Self> {
        let not_understood = || ProbeError::syntax("taskstats answer", "");
        let stats = nested(body, TYPE_AGGR_TGID).ok_or_else(not_understood)?;
        match u16_at(stats, offset::VERSION) {
            Some(15) => Err(ProbeError::Unavailable(
                "taskstats: version 15 (Linux 6.14) has another layout; use a newer kernel".into(),
            )),
            Some(version) if version < 12 => Err(ProbeError::Unavailable(format!(
                "taskstats: version {version} does not name a task's process; needs Linux 5.19"
            ))),
            _ => parse(stats).ok_or_else(not_understood),
        }
    }
}

/// Where the fields of `struct taskstats` stand; new versions only append.
mod offset {
    pub const VERSION: usize = 0;
    pub const FLAG: usize = 8;
    pub const NICE: usize = 9;
    pub const CPU_COUNT: usize = 16;
    pub const CPU_DELAY_TOTAL: usize = 24;
    pub const CPU_RUN_VIRTUAL_TOTAL: usize = 72;
    pub const COMM: usize = 80;
    pub const SCHED: usize = 112;
    pub const PID: usize = 128;
    pub const PPID: usize = 132;
    pub const ETIME: usize = 144;
    pub const HIWATER_RSS: usize = 200;
    pub const NVCSW: usize = 272;
    pub const NIVCSW: usize = 280;
    pub const TGID: usize = 368;
}

fn parse(stats: &[u8]) -> Option<ExitAccount> {
    let comm = stats.get(offset::COMM..offset::COMM + 32)?;
    let name_length = comm.iter().position(|byte| *byte == 0).unwrap_or(32);
    let rss_kb = u64_at(stats, offset::HIWATER_RSS)?;
    Some(ExitAccount {
        tid: u32_at(stats, offset::PID)?,
        pid: u32_at(stats, offset::TGID)?,
        parent: u32_at(stats, offset::PPID)?,
        name: String::from_utf8_lossy(&comm[..name_length]).into_owned(),
        nice: i32::from(*stats.get(offset::NICE)? as i8),
        // The static priority is not part of the account.
        policy: task::policy(u32::from(*stats.get(offset::SCHED)?), 0),
        last: stats.get(offset::FLAG)? & AGROUP != 0,
        cpu_ns: u64_at(stats, offset::CPU_RUN_VIRTUAL_TOTAL)?,
        run_queue_ns: u64_at(stats, offset::CPU_DELAY_TOTAL)?,
        slices: u64_at(stats, offset::CPU_COUNT)?,
        voluntary_switches: u64_at(stats, offset::NVCSW)?,
        involuntary_switches: u64_at(stats, offset::NIVCSW)?,
        elapsed_ns: u64_at(stats, offset::ETIME)? * 1000,
        rss_bytes_max: (rss_kb > 0).then_some(rss_kb * 1024),
    })
}

fn nested(body: &[u8], aggregate: u16) -> Option<&[u8]> {
    let (_, nested) = attributes(body).find(|(kind, _)| *kind == aggregate)?;
    let (_, stats) = attributes(nested).find(|(kind, _)| *kind == TYPE_STATS)?;
    Some(stats)
}
