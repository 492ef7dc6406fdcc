//! What is written down of one role.

use concurve_probe::perf::{Counts, TreeCounter};
use concurve_wire::record::{Absent, RoleRecord, Usage};

use super::threads::{self, incomplete, miscount};
use super::{all_absent, cpu_ns};
use crate::ledger::Ledger;
use crate::role::Role;
use crate::waits::watch::Watch;

/// Writes down a role that is over.
pub fn record(
    mut role: Role,
    index: usize,
    ledger: &mut Ledger,
    watch: &Watch,
    first_ns: u64,
) -> RoleRecord {
    if let Some(counter) = role
        .counter
        .as_mut()
        .filter(|one| one.reads_per_thread() > 0)
        && let Ok(counts) = counter.read()
    {
        ledger.roles[index].share_rest(counts.cpu_ns);
    }
    let counts = role
        .counter
        .as_mut()
        .map(|counter| counter.read().map_err(|e| e.to_string()));
    let counts = counts.unwrap_or_else(|| Err(role.counter_refusal.clone().unwrap_or_default()));
    let miscount = miscount(&role, index, ledger);
    let usage = usage(&role, index, ledger, &counts);
    let threads = threads::record(&mut role, index, ledger, &counts, &miscount);
    let ran = role.ran();
    let census = &mut role.census;
    let released_ns = role.released_ns.unwrap_or(first_ns);
    let mut record = RoleRecord {
        name: role.spec.name,
        pid: role.pid.filter(|_| ran),
        exit: role.exit,
        ended_by: role.ended_by.filter(|_| ran),
        released_ns: released_ns - first_ns,
        wall_ns: role
            .exited_ns
            .map_or(0, |at| at.saturating_sub(released_ns)),
        controls: role.controls,
        usage,
        threads,
        waits: None,
        phases: role
            .phases
            .finish(first_ns, |begin_ns, end_ns| match miscount {
                None => census.peak_between(begin_ns, end_ns),
                Some(_) => None,
            }),
        indicators: role.indicators,
        histograms: role.histograms,
        facts: role.facts,
        report_errors: role.channel.into_errors(),
        stragglers_killed: role.stragglers_killed,
        stdout: role.stdout.excerpt.finish(),
        stderr: role.stderr.excerpt.finish(),
        absent: Absent::new(),
    };
    if ran {
        watch.tell(index, ledger.roles[index].processes_total, &mut record);
    } else {
        record.absent = all_absent(&["waits"], "the role never ran");
    }
    record
}

fn usage(role: &Role, index: usize, ledger: &Ledger, counts: &Result<Counts, String>) -> Usage {
    if !role.ran() {
        let names = ["cpu_ns", "run_queue_ns", "migrations", "rss_bytes_max"];
        return Usage {
            absent: all_absent(&names, "the role never ran"),
            ..Usage::default()
        };
    }
    let buried = &role.buried;
    let roster = &ledger.roles[index];
    let sums = ledger.roles[index].closed();
    let mut absent = Absent::new();
    let complete = incomplete(ledger, index);
    if let Some(reason) = &complete {
        absent.extend(all_absent(&["run_queue_ns", "slices"], reason));
    }
    let migrations = counts.as_ref().ok().and_then(|counts| counts.migrations);
    if migrations.is_none() {
        let reason = counts.as_ref().err().map(String::as_str);
        let reason = reason.unwrap_or(TreeCounter::NO_MIGRATIONS);
        absent.insert("migrations".into(), reason.into());
    }
    if roster.processes_total < 2 {
        let reason = "the tree is one process: see rss_bytes_max";
        absent.insert("rss_bytes_tree_max".into(), reason.into());
    } else if roster.rss_bytes_tree_max.is_none() {
        let reason = "no sample saw two processes at once";
        absent.insert("rss_bytes_tree_max".into(), reason.into());
    }
    Usage {
        cpu_ns: Some(cpu_ns(buried)),
        user_ns: Some(buried.user_ns),
        system_ns: Some(buried.system_ns),
        run_queue_ns: complete.is_none().then_some(sums.run_queue_ns),
        slices: complete.is_none().then_some(sums.slices),
        voluntary_switches: Some(buried.voluntary_switches),
        involuntary_switches: Some(buried.involuntary_switches),
        migrations,
        minor_faults: Some(buried.minor_faults),
        major_faults: Some(buried.major_faults),
        // wait4 knows no less than the fork of the runner itself; the exit accounts do.
        rss_bytes_max: roster.rss_bytes_max.or(Some(buried.rss_bytes_max)),
        rss_bytes_tree_max: roster.rss_bytes_tree_max,
        block_inputs: Some(buried.block_inputs),
        block_outputs: Some(buried.block_outputs),
        absent,
    }
}
