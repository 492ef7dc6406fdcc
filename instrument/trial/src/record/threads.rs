//! What is written down of a role's threads, and whether it is all of them.

use concurve_probe::perf::Counts;
use concurve_wire::record::{Absent, ThreadsRecord};

use super::all_absent;
use crate::ledger::Ledger;
use crate::role::Role;

/// Writes down the threads of a role that is over; `miscount` as of [`miscount`].
pub fn record(
    role: &mut Role,
    index: usize,
    ledger: &mut Ledger,
    counts: &Result<Counts, String>,
    miscount: &Option<String>,
) -> ThreadsRecord {
    if !role.ran() {
        return ThreadsRecord {
            absent: all_absent(
                &["total", "peak", "processes", "cpu_ns"],
                "the role never ran",
            ),
            ..ThreadsRecord::default()
        };
    }
    let sums = ledger.roles[index].closed();
    let gap = incomplete(ledger, index);
    let listed = ledger.roles[index].take_listed();
    let roster = &ledger.roles[index];
    let accounts = gap.is_none();
    let mut record = ThreadsRecord {
        total: accounts.then_some(sums.threads),
        peak: Some(roster.threads_peak.max(1)),
        processes: accounts.then_some(roster.processes_total),
        cpu_ns: accounts.then_some(sums.cpu_ns),
        listed,
        absent: Absent::new(),
    };
    match miscount {
        None => {
            record.total = Some(role.census.threads());
            record.peak = Some(role.census.peak());
            record.processes = Some(role.census.processes());
            // The kernel adds each thread's time to the tree's as it exits.
            let tree_ns = counts.as_ref().ok().map(|counts| counts.cpu_ns);
            record.cpu_ns = record.cpu_ns.or(tree_ns);
        }
        Some(reason) => {
            let reason = format!("a lower bound, by samples: {reason}");
            record.absent.insert("peak".into(), reason);
        }
    }
    let missing = [
        ("total", record.total),
        ("processes", record.processes),
        ("cpu_ns", record.cpu_ns),
    ];
    for (name, _) in missing.iter().filter(|(_, value)| value.is_none()) {
        let reason = gap.clone().unwrap_or_default();
        record.absent.insert((*name).into(), reason);
    }
    record
}

/// Why sums over threads may lack some, if they may.
pub fn incomplete(ledger: &Ledger, index: usize) -> Option<String> {
    if ledger.exits_granted && !ledger.exits_lost {
        return None;
    }
    let why = match ledger.exits_granted {
        true => "exit accounts were lost",
        false => "no exit accounts (taskstats)",
    };
    let sampled = ledger.roles[index].sampled_only;
    Some(format!(
        "{why}: threads that ended between two samples may be missing; {sampled} are known by \
         their last sample only"
    ))
}

/// Why births and deaths do not say how many threads there were, if they do not.
pub fn miscount(role: &Role, index: usize, ledger: &Ledger) -> Option<String> {
    if role.lives.is_none() {
        return Some(role.lives_refusal.clone().unwrap_or_default());
    }
    role.census.gap().or_else(|| {
        let threads = ledger.roles[index].closed().threads;
        let processes = ledger.roles[index].processes_total;
        (threads > role.census.threads() || processes > role.census.processes()).then(|| {
            "a program that this user may not watch (set-user-ID, or not readable) ran in the tree"
                .into()
        })
    })
}
