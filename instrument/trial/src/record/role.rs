//! The record of one role and of its threads, and whether those are all of them.

use concurve_probe::perf::{Counts, TreeCounter};
use concurve_wire::record::{Absent, RoleRecord, ThreadsRecord, Usage};

use crate::attached::Attached;
use crate::ledger::Ledger;
use crate::phases;
use crate::role::Role;
use crate::waits::sampling::WaitSampling;

use super::waited_for::{self, CpuTime, NOT_WAITED_FOR};

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
    let cpu_time = cpu_time(&mut role, index, ledger);
    let usage = usage(&role, index, ledger, &counts, cpu_time);
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
    // The counter goes on while the hypervisor has the CPU, wait4's figure does not.
    let counted_ns = counts.as_ref().ok().map(|counts| counts.cpu_ns);
    if let Some(whole_ns) = counted_ns.max(record.usage.cpu_ns) {
        for phase in &mut record.phases {
            phases::withhold_beyond(whole_ns, &mut phase.usage);
        }
    }
    if ran {
        waits.write_to(index, ledger.roles[index].processes_total, &mut record);
    } else {
        record.absent = all_absent(&["waits"], "the role never ran");
    }
    record
}

/// The CPU time of a role; of an attached one, which is never waited for, none.
pub fn cpu_time(role: &mut Role, index: usize, ledger: &Ledger) -> CpuTime {
    let wait4_ns = role.reaped.cpu_ns();
    if role.attached.is_some() || !role.ran() {
        return CpuTime {
            ns: wait4_ns,
            is_waited_for: true,
        };
    }
    let counter = role.counter.as_mut();
    let tree_ns = counter.and_then(|counter| Some(counter.read().ok()?.cpu_ns));
    let accounts_ns = ledger.roles[index].closed().cpu_ns;
    let complete = ledger.exits_missing().is_none();
    let wait4_ns = role.ended_by.map(|_| wait4_ns);
    // Without births nobody knows whether there were children between two samples.
    let births = role.lives.as_ref().and(role.census.processes_so_far());
    let is_alone = births == Some(1) && ledger.roles[index].processes_total == 1;
    waited_for::cpu_time(wait4_ns, accounts_ns, complete, tree_ns, is_alone)
}

fn usage(
    role: &Role,
    index: usize,
    ledger: &Ledger,
    counts: &Result<Counts, String>,
    cpu_time: CpuTime,
) -> Usage {
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
    let of_wait4 = |value: u64| cpu_time.is_waited_for.then_some(value);
    let switches = |waited_for: u64, accounts: u64| match cpu_time.is_waited_for {
        true => Some(waited_for),
        false => complete.is_none().then_some(accounts),
    };
    let usage = Usage {
        cpu_ns: Some(cpu_time.ns).filter(|ns| *ns > 0 || cpu_time.is_waited_for),
        user_ns: of_wait4(reaped.user_ns),
        system_ns: of_wait4(reaped.system_ns),
        run_queue_ns: complete.is_none().then_some(sums.run_queue_ns),
        slices: complete.is_none().then_some(sums.slices),
        voluntary_switches: switches(reaped.voluntary_switches, sums.voluntary_switches),
        involuntary_switches: switches(reaped.involuntary_switches, sums.involuntary_switches),
        migrations,
        cache_misses,
        minor_faults: of_wait4(reaped.minor_faults),
        major_faults: of_wait4(reaped.major_faults),
        // wait4's figure is at least that of the forked runner; exit accounts do not include it.
        rss_bytes_max: roster
            .rss_bytes_max
            .or_else(|| of_wait4(reaped.rss_bytes_max)),
        rss_bytes_tree_max: roster.rss_bytes_tree_max,
        block_inputs: of_wait4(reaped.block_inputs),
        block_outputs: of_wait4(reaped.block_outputs),
        absent,
    };
    if_waited_for(usage)
}

/// Says why what `wait4` alone knows is missing, if it is.
fn if_waited_for(mut usage: Usage) -> Usage {
    let missing = [
        ("cpu_ns", usage.cpu_ns),
        ("user_ns", usage.user_ns),
        ("system_ns", usage.system_ns),
        ("voluntary_switches", usage.voluntary_switches),
        ("involuntary_switches", usage.involuntary_switches),
        ("minor_faults", usage.minor_faults),
        ("major_faults", usage.major_faults),
        ("rss_bytes_max", usage.rss_bytes_max),
        ("block_inputs", usage.block_inputs),
        ("block_outputs", usage.block_outputs),
    ];
    for (name, _) in missing.iter().filter(|(_, value)| value.is_none()) {
        usage.absent.insert((*name).into(), NOT_WAITED_FOR.into());
    }
    usage
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
    let why = ledger.exits_missing()?;
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
