//! The record of one role and of its threads, and whether those are all of them.

use concurve_probe::perf::{Counts, TreeCounter};
use concurve_wire::record::{Absent, RoleRecord, ThreadsRecord, Usage};

use crate::attached::Attached;
use crate::ledger::Ledger;
use crate::phases;
use crate::role::Role;
use crate::waits::sampling::WaitSampling;

/// The record of a role that has ended.
pub fn record(
    mut role: Role,
    index: usize,
    ledger: &mut Ledger,
    waits: &WaitSampling,
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
    let threads = threads(&mut role, index, ledger, &counts, &miscount);
    let ran = role.ran();
    let census = &mut role.census;
    let released_ns = role.released_ns.unwrap_or(first_ns);
    let mut record = RoleRecord {
        name: role.spec.name,
        pid: role
            .attached
            .as_ref()
            .map(|it| it.pid)
            .or(role.pid)
            .filter(|_| ran),
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
        quota: None,
        runtime: None,
        sites: None,
        hot: None,
        thread_timelines: None,
        absent: Absent::new(),
    };
    if ran {
        waits.write_to(index, ledger.roles[index].processes_total, &mut record);
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
    if let Some(attached) = &role.attached {
        return usage_while_attached(attached);
    }
    let reaped = &role.reaped;
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
    let cache_misses = match role.cache_misses_so_far() {
        Some(Err(reason)) => {
            absent.insert("cache_misses".into(), reason);
            None
        }
        counted => counted.and_then(Result::ok),
    };
    if roster.processes_total < 2 {
        let reason = "the tree is one process: see rss_bytes_max";
        absent.insert("rss_bytes_tree_max".into(), reason.into());
    } else if roster.rss_bytes_tree_max.is_none() {
        let reason = "no sample saw two processes at once";
        absent.insert("rss_bytes_tree_max".into(), reason.into());
    }
    Usage {
        cpu_ns: Some(reaped.cpu_ns()),
        user_ns: Some(reaped.user_ns),
        system_ns: Some(reaped.system_ns),
        run_queue_ns: complete.is_none().then_some(sums.run_queue_ns),
        slices: complete.is_none().then_some(sums.slices),
        voluntary_switches: Some(reaped.voluntary_switches),
        involuntary_switches: Some(reaped.involuntary_switches),
        migrations,
        cache_misses,
        minor_faults: Some(reaped.minor_faults),
        major_faults: Some(reaped.major_faults),
        // wait4's figure is at least that of the forked runner; exit accounts do not include it.
        rss_bytes_max: roster.rss_bytes_max.or(Some(reaped.rss_bytes_max)),
        rss_bytes_tree_max: roster.rss_bytes_tree_max,
        block_inputs: Some(reaped.block_inputs),
        block_outputs: Some(reaped.block_outputs),
        absent,
    }
}

/// What the processes of an attached role used during the trial.
fn usage_while_attached(attached: &Attached) -> Usage {
    match attached.begin.as_ref().zip(attached.end.as_ref()) {
        Some((begin, end)) => phases::difference(begin, end),
        None => Usage {
            absent: all_absent(&["cpu_ns", "run_queue_ns"], "the trial ended too early"),
            ..Usage::default()
        },
    }
}

/// The record of the threads of a role that has ended; `miscount` is the result of [`miscount`].
fn threads(
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
    let sums = ledger.roles[index].closed_since_attached();
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
            // The kernel adds a thread's time to the tree's counter when the thread exits.
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

/// Why sums over threads may be incomplete, if they may.
fn incomplete(ledger: &Ledger, index: usize) -> Option<String> {
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

/// Why births and deaths do not give the number of threads, if they do not.
fn miscount(role: &Role, index: usize, ledger: &Ledger) -> Option<String> {
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

/// Figures that no source gave, with one reason for all.
fn all_absent(names: &[&str], reason: &str) -> Absent {
    let entry = |name: &&str| (name.to_string(), reason.to_owned());
    names.iter().map(entry).collect()
}
