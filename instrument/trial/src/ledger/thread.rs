//! What is known of a thread: its last sample, its final reading, its perf counts, its lifetime,
//! and the sums made of them.

use std::collections::HashMap;

use concurve_probe::perf::{Counts, Life, LifeEvent};
use concurve_probe::schedstat::Schedstat;
use concurve_probe::taskstats::ExitAccount;
use concurve_wire::record::Usage;
use concurve_wire::spec::Policy;

use crate::waits::ActivityCounts;

/// What is known of a thread that has not ended yet.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    pub pid: u32,
    pub name: String,
    pub nice: Option<i32>,
    pub policy: Option<Policy>,
    pub cpus: Option<Vec<u32>>,
    pub schedstat: Schedstat,
    /// Voluntary and involuntary.
    pub switches: Option<(u64, u64)>,
    pub waits: ActivityCounts,
}

/// What a zombie's files say; exact.
#[derive(Debug, Clone)]
pub struct Final {
    pub name: String,
    pub nice: i32,
    pub policy: Option<Policy>,
    pub schedstat: Schedstat,
    pub switches: Option<(u64, u64)>,
    pub migrations: Option<u64>,
    /// CPU time of its process, by the clock of that: its other threads, which have ended, included.
    pub process_ns: Option<u64>,
    /// CPU time of its ended children, as it knows it.
    pub children_ns: u64,
}

/// An exit account's CPU time is as of the last tick; no tick is this long.
pub const LAG_NS_MAX: u64 = 20_000_000;

/// Counts of an exiting thread, of the CPUs whose counts have arrived.
#[derive(Debug, Clone, Default)]
pub struct Reads {
    counts: Vec<Option<Counts>>,
}

impl Reads {
    /// Records the counts of one CPU of `cpus`.
    pub fn note(&mut self, cpu_index: usize, cpus: usize, counts: Counts) {
        self.counts.resize(cpus, None);
        self.counts[cpu_index] = Some(counts);
    }

    pub fn complete(&self) -> bool {
        self.counts.iter().all(Option::is_some)
    }

    pub fn sum(&self) -> Counts {
        let arrived = self.counts.iter().flatten();
        arrived.copied().reduce(Counts::plus).unwrap_or_default()
    }

    /// The CPU time, if these are the counts of the thread whose exit account says `account_ns`.
    ///
    /// An exit account's CPU time is as of the last tick, and ticks are at most 10 ms apart:
    /// counts that differ by more are another thread's. One CPU's may be lost; then the account
    /// or what is left, whichever is more, is nearer the truth.
    pub fn refine(&self, account_ns: u64) -> Option<u64> {
        let cpu_ns = self.sum().cpu_ns;
        if cpu_ns > account_ns + LAG_NS_MAX {
            return None;
        }
        match self.complete() {
            true => (cpu_ns + 1_000_000 >= account_ns).then_some(cpu_ns),
            false => Some(cpu_ns.max(account_ns)),
        }
    }
}

/// Sums over threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    pub threads: u64,
    pub cpu_ns: u64,
    pub run_queue_ns: u64,
    pub slices: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

impl Sums {
    pub fn add(&mut self, other: Self) {
        self.threads += other.threads;
        self.cpu_ns += other.cpu_ns;
        self.run_queue_ns += other.run_queue_ns;
        self.slices += other.slices;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
    }

    /// No count is less than in `least`.
    pub fn raise_to(&mut self, least: Self) {
        self.threads = self.threads.max(least.threads);
        self.cpu_ns = self.cpu_ns.max(least.cpu_ns);
        self.run_queue_ns = self.run_queue_ns.max(least.run_queue_ns);
        self.slices = self.slices.max(least.slices);
        self.voluntary_switches = self.voluntary_switches.max(least.voluntary_switches);
        self.involuntary_switches = self.involuntary_switches.max(least.involuntary_switches);
    }

    /// What is more than in `earlier`.
    pub fn minus(self, earlier: Self) -> Self {
        Self {
            threads: self.threads.saturating_sub(earlier.threads),
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            run_queue_ns: self.run_queue_ns.saturating_sub(earlier.run_queue_ns),
            slices: self.slices.saturating_sub(earlier.slices),
            voluntary_switches: self
                .voluntary_switches
                .saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
        }
    }

    /// The account of a whole process or of one thread.
    pub fn of(account: &ExitAccount) -> Self {
        Self {
            threads: 1,
            cpu_ns: account.cpu_ns,
            run_queue_ns: account.run_queue_ns,
            slices: account.slices,
            voluntary_switches: account.voluntary_switches,
            involuntary_switches: account.involuntary_switches,
        }
    }
    /// What files of `/proc` say of one thread.
    pub fn read(schedstat: &Schedstat, switches: Option<(u64, u64)>) -> Self {
        let (voluntary_switches, involuntary_switches) = switches.unwrap_or_default();
        Self {
            threads: 1,
            cpu_ns: schedstat.cpu_ns,
            run_queue_ns: schedstat.run_queue_ns,
            slices: schedstat.slices,
            voluntary_switches,
            involuntary_switches,
        }
    }

    /// The wire form. `self` holds 0 for switches that are not known.
    pub fn usage(self, switches_known: bool, migrations: Option<u64>) -> Usage {
        Usage {
            cpu_ns: Some(self.cpu_ns),
            run_queue_ns: Some(self.run_queue_ns),
            slices: Some(self.slices),
            voluntary_switches: switches_known.then_some(self.voluntary_switches),
            involuntary_switches: switches_known.then_some(self.involuntary_switches),
            migrations,
            ..Usage::default()
        }
    }
}

/// Threads kept; of further ones it is not known.
const KEPT_MAX: usize = 200_000;

/// Last birth and last death of each thread number, in whichever order they were reported: each CPU
/// reports its own.
#[derive(Debug, Default)]
pub struct Lifetimes {
    born_ns: HashMap<u32, u64>,
    died_ns: HashMap<u32, u64>,
}

impl Lifetimes {
    pub fn born(&mut self, tid: u32, at_ns: u64) {
        keep_later(&mut self.born_ns, tid, at_ns);
    }

    pub fn note(&mut self, life: &Life) {
        match life.event {
            LifeEvent::Birth => keep_later(&mut self.born_ns, life.tid, life.at_ns),
            LifeEvent::Death => keep_later(&mut self.died_ns, life.tid, life.at_ns),
        }
    }

    /// Time from birth to death, if both are known.
    pub fn of(&self, tid: u32) -> Option<u64> {
        let (born_ns, died_ns) = (self.born_ns.get(&tid)?, self.died_ns.get(&tid)?);
        died_ns.checked_sub(*born_ns)
    }
}

fn keep_later(times: &mut HashMap<u32, u64>, tid: u32, at_ns: u64) {
    if times.len() < KEPT_MAX || times.contains_key(&tid) {
        let time = times.entry(tid).or_default();
        *time = at_ns.max(*time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_from_birth_to_death_in_whichever_order_they_are_reported() {
        let life = |at_ns, event| Life {
            at_ns,
            pid: 1,
            parent: 1,
            tid: 2,
            event,
        };
        let (birth, death) = (life(100, LifeEvent::Birth), life(350, LifeEvent::Death));
        for events in [[birth, death], [death, birth]] {
            let mut lifetimes = Lifetimes::default();
            lifetimes.note(&events[0]);
            assert_eq!(lifetimes.of(2), None);
            lifetimes.note(&events[1]);
            assert_eq!(lifetimes.of(2), Some(250));
            // The number belongs to a new thread, which is alive.
            lifetimes.born(2, 400);
            assert_eq!(lifetimes.of(2), None);
        }
    }
}
