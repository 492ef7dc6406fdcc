//! The accounts of one role: its processes, its living threads, and what the ended ones used.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use concurve_wire::record::ThreadRecord;

use super::thread::{Final, LAG_NS_MAX, Seen, Sums};

/// What a thread had used at a time.
#[derive(Debug, Clone, Copy)]
pub struct Baseline {
    pub at_ns: u64,
    pub sums: Sums,
}

/// The threads of one role.
#[derive(Debug, Default)]
pub struct RoleLedger {
    /// Threads that are alive as far as is known, by their number.
    pub living: HashMap<u32, Seen>,
    /// Processes that are alive as far as is known.
    pub processes: HashSet<u32>,
    pub processes_total: u64,
    /// Processes that were ever born in its tree, as perf reported; none where it does not.
    pub processes_born: Option<u64>,
    /// Ended threads of processes that have ended.
    closed: Sums,
    /// Ended threads of processes that live on.
    open: HashMap<u32, Sums>,
    /// Those with most CPU time, and a few more.
    listed: Vec<ThreadRecord>,
    listed_max: usize,
    /// Threads whose counts were lost: their CPU time is as of their last tick.
    uncounted: Vec<u32>,
    /// Threads of which an account at their end, or their zombie, says what they used.
    pub booked_exactly: u64,
    /// Threads of which only a sample is known.
    pub sampled_only: u64,
    /// Processes that ended without an account of what they used. Their clocks have ended with them.
    pub unbooked_processes: u64,
    /// Those of them that no sample saw.
    pub unsampled_processes: u64,
    /// CPU time that the clocks of ended processes had and no thread that is known.
    pub unseen_ns: u64,
    /// What ended children had used, as their parents knew it that have ended and were waited for.
    pub children_ns: u64,
    pub threads_peak: u64,
    /// What threads of an attached role had used when it was attached.
    pub baselines: HashMap<u32, Baseline>,
    /// What all its processes together had used then.
    pub before: Sums,
    /// The same of each.
    before_of: HashMap<u32, Sums>,
    /// What each had waited for then of its children, in ticks.
    children_before: HashMap<u32, u64>,
    /// CPU time of an attached role beyond its accounts, as far as is known: the kernel takes the memory of a process
    /// apart after it has sent its account.
    beyond_accounts_ns: u64,
    pub rss_bytes_max: Option<u64>,
    pub rss_bytes_tree_max: Option<u64>,
}

impl RoleLedger {
    /// The ledger of a role without processes, which will list so many threads.
    pub fn new(listed_max: usize) -> Self {
        Self {
            listed_max,
            ..Self::default()
        }
    }

    /// Records one more process.
    pub fn enter(&mut self, pid: u32) {
        self.processes.insert(pid);
        self.processes_total += 1;
    }

    /// Records what a thread had used when its process was attached.
    pub fn baseline(&mut self, tid: u32, at_ns: u64, sums: Sums) {
        self.baselines.insert(tid, Baseline { at_ns, sums });
    }

    /// Records what a process had used when it was attached, and what of it the threads that lived
    /// then had.
    pub fn used_before(&mut self, pid: u32, process: Sums, living: Sums) {
        let counted = |sums: Sums| Sums { threads: 0, ..sums };
        self.before.add(counted(process));
        self.before_of.insert(pid, counted(process));
        let ended = counted(process.minus(living));
        self.open.entry(pid).or_default().add(ended);
    }

    /// Records what a process used that ended before its role was attached. Its parent may wait for it at any time.
    pub fn ended_before(&mut self, cpu_ns: u64) {
        self.closed.cpu_ns += cpu_ns;
        self.before.cpu_ns += cpu_ns;
    }

    /// Records what a process had waited for of its children when it was attached, in ticks.
    pub fn waited_before(&mut self, pid: u32, children_ticks: u64) {
        self.children_before.insert(pid, children_ticks);
    }

    /// Ticks of CPU time of children that its processes have waited for since they were attached, at least. `now` has
    /// the counters of those that live: user and system time are each cut to ticks.
    pub fn waited_since(&self, now: &[(u32, u64)]) -> u64 {
        const CUT: u64 = 2;
        let grown = now
            .iter()
            .map(|(pid, ticks)| match self.children_before.get(pid) {
                Some(before) => ticks.saturating_sub(before + CUT),
                None => *ticks,
            });
        // Who waited for a process that has ended has the counter of that, too.
        let ended = self.children_before.iter();
        let ended = ended
            .filter(|(pid, before)| **before > 0 && !now.iter().any(|(living, _)| living == *pid));
        let ended: u64 = ended.map(|(_, before)| before + CUT).sum();
        grown.sum::<u64>().saturating_sub(ended)
    }

    /// Takes what an attached role has used beyond its accounts, and returns the most that was ever seen: a child may
    /// have its account before it is waited for.
    pub fn raise_beyond_accounts(&mut self, cpu_ns: u64) -> u64 {
        self.beyond_accounts_ns = self.beyond_accounts_ns.max(cpu_ns);
        self.beyond_accounts_ns
    }

    /// Has a process that ends have used no less than before it was attached: one that exited just then has sent its
    /// accounts before anybody received them. Whether it is one of these.
    pub fn keep_before(&mut self, pid: u32) -> bool {
        let before = self.before_of.remove(&pid);
        let Some(before) = before.filter(|_| self.processes.contains(&pid)) else {
            return false;
        };
        self.open.entry(pid).or_default().raise_to(before);
        true
    }

    /// What a thread used since its process was attached, and since when that is counted if it was
    /// there before.
    pub fn since_attached(&self, tid: u32, sums: Sums) -> (Sums, Option<u64>) {
        match self.baselines.get(&tid) {
            Some(baseline) => (sums.minus(baseline.sums), Some(baseline.at_ns)),
            None => (sums, None),
        }
    }

    /// Enters what the clock of a process that has ended has beyond its known threads: others ended, which no
    /// sample saw to their end. Of these the CPU time is all that is known.
    pub fn book_clock(&mut self, pid: u32, clock_ns: u64) {
        if let Some(sums) = self.open.get_mut(&pid) {
            let unseen_ns = clock_ns.saturating_sub(sums.cpu_ns);
            sums.cpu_ns += unseen_ns;
            self.unseen_ns += unseen_ns;
        }
    }

    /// Records the end of a process.
    pub fn close(&mut self, pid: u32) {
        self.processes.remove(&pid);
        self.before_of.remove(&pid);
        if let Some(sums) = self.open.remove(&pid) {
            self.closed.add(sums);
        }
    }

    /// Records the end of a thread, and what it used.
    pub fn book(&mut self, mut record: ThreadRecord, sums: Sums) {
        if record.lived_ns.is_none() {
            let reason =
                "neither an exit account (taskstats) nor both its birth and its death came";
            record.absent.insert("lived_ns".into(), reason.into());
        }
        match self.processes.contains(&record.pid) {
            true => self.open.entry(record.pid).or_default().add(sums),
            false => self.closed.add(sums),
        }
        self.listed.push(record);
        if self.listed.len() > 2 * self.listed_max + 64 {
            self.rank();
        }
    }

    /// Records that the CPU time entered for a thread is as of its last tick.
    pub fn book_uncounted(&mut self, tid: u32) {
        self.uncounted.push(tid);
    }

    /// Replaces what was entered at a leader's exit by the exact figures of its zombie.
    pub fn correct(&mut self, pid: u32, booked_ns: u64, reading: &Final) {
        let sums = match self.open.get_mut(&pid) {
            Some(sums) => sums,
            None => &mut self.closed,
        };
        sums.cpu_ns = sums.cpu_ns.saturating_sub(booked_ns) + reading.schedstat.cpu_ns;
        let booked = self.listed.iter_mut().rfind(|record| record.tid == pid);
        if let Some(record) = booked {
            record.usage.cpu_ns = Some(reading.schedstat.cpu_ns);
            record.usage.migrations = reading.migrations;
        }
    }

    /// Divides the CPU time that is in no account equally among the threads whose counts were lost: the
    /// counter of the whole tree is exact nevertheless.
    pub fn share_rest(&mut self, tree_cpu_ns: u64) {
        let uncounted = std::mem::take(&mut self.uncounted);
        let rest_ns = tree_cpu_ns.saturating_sub(self.closed.cpu_ns);
        let Some(share_ns) = rest_ns.checked_div(uncounted.len() as u64) else {
            return;
        };
        if share_ns > LAG_NS_MAX {
            return;
        }
        self.closed.cpu_ns += share_ns * uncounted.len() as u64;
        for thread in &mut self.listed {
            if uncounted.contains(&thread.tid) && thread.usage.migrations.is_none() {
                thread.usage.cpu_ns = thread.usage.cpu_ns.map(|cpu_ns| cpu_ns + share_ns);
            }
        }
    }

    /// Sums over all threads that have ended, in ended processes only.
    pub fn closed(&self) -> Sums {
        self.closed
    }

    /// The same without what was used before an attached role was attached.
    pub fn closed_since_attached(&self) -> Sums {
        self.closed.minus(self.before)
    }

    /// Sums over the ended threads of a process that lives on.
    pub fn ended_of(&self, pid: u32) -> Sums {
        self.open.get(&pid).copied().unwrap_or_default()
    }

    /// The threads with most CPU time, most first.
    pub fn take_listed(&mut self) -> Vec<ThreadRecord> {
        self.rank();
        std::mem::take(&mut self.listed)
    }

    fn rank(&mut self) {
        let by_time = |it: &ThreadRecord| (Reverse(it.usage.cpu_ns), it.tid);
        self.listed.sort_by_key(by_time);
        self.listed.truncate(self.listed_max);
    }
}
