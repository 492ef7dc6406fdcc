//! Enters the ends of threads: by an exit account, by a zombie, or by the last sample.

use concurve_clock as clock;
use concurve_probe::taskstats::ExitAccount;
use concurve_wire::record::{Absent, ThreadRecord, ThreadSource};
use concurve_wire::spec::Policy;

use super::Ledger;
use super::thread::{Final, Reads, Seen, Sums};
use crate::convert;

impl Ledger {
    /// Enters an exit whose role is known.
    pub(super) fn book_exit(&mut self, account: ExitAccount) {
        let Some(role) = self.belongs(&account) else {
            return;
        };
        if self.role_of.insert(account.pid, role).is_none() {
            self.roles[role].enter(account.pid);
        }
        let ledger = &mut self.roles[role];
        ledger.rss_bytes_max = ledger.rss_bytes_max.max(account.rss_bytes_max);
        let seen = ledger.living.remove(&account.tid).unwrap_or_default();
        let mut sums = Sums::of(&account);
        let reading = match account.tid == account.pid {
            true => self.finals.remove(&account.pid),
            false => None,
        };
        let reads = self.reads.remove(&account.tid);
        let zombie_to_come = account.tid == account.pid && reading.is_none();
        let mut migrations = None;
        let mut counted = false;
        if let Some(reading) = reading {
            sums.cpu_ns = reading.schedstat.cpu_ns;
            migrations = reading.migrations;
            counted = true;
        } else if let Some(reads) = reads
            && let Some(cpu_ns) = reads.refine(account.cpu_ns)
        {
            sums.cpu_ns = cpu_ns;
            counted = reads.complete();
            migrations = reads.sum().migrations.filter(|_| counted);
        }
        if !zombie_to_come && !counted {
            self.roles[role].book_uncounted(account.tid);
        }
        if zombie_to_come {
            self.booked_leaders.insert(account.pid, sums.cpu_ns);
        }
        let (since, attached_ns) = self.roles[role].since_attached(account.tid, sums);
        let record = ThreadRecord {
            tid: account.tid,
            pid: account.pid,
            name: account.name,
            source: ThreadSource::Exit,
            nice: Some(account.nice),
            policy: static_priority(account.policy.map(convert::policy), seen.policy),
            cpus: seen.cpus,
            lived_ns: Some(lived_since(attached_ns).unwrap_or(account.elapsed_ns)),
            usage: since.usage(true, migrations),
            waits: seen.waits.finish(),
            absent: Absent::new(),
        };
        self.roles[role].booked_exactly += 1;
        self.roles[role].book(record, sums);
        if account.last {
            self.roles[role].close(account.pid);
        }
    }

    /// Enters an end without an exit account, from the zombie's files.
    pub(super) fn end_by_zombie(&mut self, role: usize, pid: u32, seen: Seen, reading: Final) {
        let sums = Sums::read(&reading.schedstat, reading.switches);
        let record = ThreadRecord {
            tid: pid,
            pid,
            name: reading.name,
            source: ThreadSource::Exit,
            nice: Some(reading.nice),
            policy: reading.policy,
            cpus: seen.cpus,
            lived_ns: self.lives.of(pid),
            usage: sums.usage(reading.switches.is_some(), reading.migrations),
            waits: seen.waits.finish(),
            absent: Absent::new(),
        };
        self.roles[role].booked_exactly += 1;
        self.roles[role].book(record, sums);
    }

    /// Enters an end without any account, from the last sample, and from the counters if those of
    /// all CPUs arrived.
    pub(super) fn end_by_sample(&mut self, role: usize, tid: u32, seen: Seen) {
        let mut sums = Sums::read(&seen.schedstat, seen.switches);
        let mut migrations = None;
        if let Some(reads) = self.reads.remove(&tid).filter(Reads::complete)
            && reads.sum().cpu_ns >= sums.cpu_ns
        {
            sums.cpu_ns = reads.sum().cpu_ns;
            migrations = reads.sum().migrations;
        }
        self.roles[role].sampled_only += 1;
        let (since, attached_ns) = self.roles[role].since_attached(tid, sums);
        let record = ThreadRecord {
            tid,
            pid: seen.pid,
            name: seen.name,
            source: ThreadSource::Sample,
            nice: seen.nice,
            policy: seen.policy,
            cpus: seen.cpus,
            lived_ns: lived_since(attached_ns).or_else(|| self.lives.of(tid)),
            usage: since.usage(seen.switches.is_some(), migrations),
            waits: seen.waits.finish(),
            absent: Absent::new(),
        };
        self.roles[role].book(record, sums);
    }
}

/// How long a thread of an attached role was accounted.
fn lived_since(attached_ns: Option<u64>) -> Option<u64> {
    attached_ns.map(|at_ns| clock::monotonic_ns().saturating_sub(at_ns))
}

/// Exit accounts lack the static priority; the last sample has it if its class is the same.
fn static_priority(at_exit: Option<Policy>, sampled: Option<Policy>) -> Option<Policy> {
    let at_exit = at_exit?;
    match sampled {
        Some(sampled) if sampled.class == at_exit.class => Some(sampled),
        _ => Some(at_exit),
    }
}
