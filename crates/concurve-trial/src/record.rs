//! A finished trial to its record.

use concurve_probe::clock;
use concurve_probe::perf::{Counts, TreeCounter};
use concurve_wire::FORMAT;
use concurve_wire::record::{
    Absent, InstrumentRecord, Outcome, OutcomeKind, RoleRecord, ThreadsRecord, TrialRecord, Usage,
};
use concurve_wire::spec::End;

use crate::ledger::Ledger;
use crate::machine::Snapshot;
use crate::role::{Buried, Role};
use crate::trial::Trial;
use crate::watch::Watch;

/// Version of this runner.
pub const RUNNER: &str = concat!("concurve-trial ", env!("CARGO_PKG_VERSION"));

/// Writes down what was measured.
pub fn write(trial: Trial) -> TrialRecord {
    let end_ns = clock::monotonic_ns();
    let runner_cpu_ns = clock::process_cpu_ns() - trial.runner_cpu_begin_ns;
    let Trial {
        spec,
        host,
        roles,
        mut ledger,
        sampler,
        outcome,
        first_release_ns,
        machine_begin,
        ..
    } = trial;
    let first_ns = first_release_ns.unwrap_or(end_ns);
    let own_cpu_ns = runner_cpu_ns
        + trial.unattributed_cpu_ns
        + roles.iter().map(|role| cpu_ns(&role.buried)).sum::<u64>();
    let wall_ns = wall_ns(&roles, first_ns);
    let machine = machine_begin.map(|begin| {
        let end = Snapshot::take(&host.proc_fs, roles.len());
        begin.until(&end, end_ns - first_ns, own_cpu_ns, &host.proc_fs)
    });
    let mut sources = vec!["wait4".to_owned()];
    let mut absent = host.absent;
    if host.taskstats.is_some() {
        sources.push("taskstats".into());
    }
    if roles.iter().any(|role| role.counter.is_some()) {
        sources.push("perf".into());
    } else if let Some(reason) = roles.iter().find_map(|role| role.counter_refusal.clone()) {
        absent.insert("perf".into(), reason);
    }
    if !absent.contains_key("real_time") {
        sources.push("real_time".into());
    }
    if sampler.samples > 0 {
        sources.push("schedstat".into());
    }
    if sampler.watch.any() {
        sources.push("syscall".into());
    }
    if ledger.exits_lost {
        let reason = "the kernel lost exits because they came too fast; raise net.core.rmem_max";
        absent.entry("taskstats".into()).or_insert(reason.into());
    }
    if trial.unattributed_cpu_ns > 0 {
        let ns = trial.unattributed_cpu_ns;
        absent.insert(
            "attribution".into(),
            format!("{ns} ns of CPU time belong to orphans whose role could not be told"),
        );
    }
    if machine
        .as_ref()
        .is_some_and(|machine| !machine.psi.is_empty())
    {
        sources.push("psi".into());
    }
    let sample_interval_ns = sampler.mean_interval_ns();
    TrialRecord {
        format: FORMAT,
        trial: spec.trial,
        runner: RUNNER.into(),
        started_unix_ns: trial.started_unix_ns,
        outcome: outcome.unwrap_or(Outcome {
            kind: OutcomeKind::Ok,
            role: None,
            message: None,
        }),
        wall_ns,
        roles: roles
            .into_iter()
            .enumerate()
            .map(|(index, role)| role_record(role, index, &mut ledger, &sampler.watch, first_ns))
            .collect(),
        machine: machine.unwrap_or_default(),
        instrument: InstrumentRecord {
            samples: sampler.samples,
            runner_cpu_ns,
            sampling_cpu_ns: sampler.cpu_ns,
            sample_interval_ns,
            clock_step_ns: clock::monotonic_step_ns(),
            sources,
            absent,
        },
    }
}

fn wall_ns(roles: &[Role], first_ns: u64) -> u64 {
    let exits = roles
        .iter()
        .filter(|role| role.spec.end == End::Exit && role.released_ns.is_some())
        .filter_map(|role| role.exited_ns);
    exits.max().map_or(0, |last| last.saturating_sub(first_ns))
}

fn cpu_ns(buried: &Buried) -> u64 {
    buried.user_ns + buried.system_ns
}

fn role_record(
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
        ledger.share_rest(index, counts.cpu_ns);
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

/// What no source could give, with one reason for all.
fn all_absent(names: &[&str], reason: &str) -> Absent {
    let entry = |name: &&str| (name.to_string(), reason.to_owned());
    names.iter().map(entry).collect()
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
    let sums = ledger.closed(index);
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

/// Why sums over threads may lack some, if they may.
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

/// Why births and deaths do not say how many threads there were, if they do not.
fn miscount(role: &Role, index: usize, ledger: &Ledger) -> Option<String> {
    if role.lives.is_none() {
        return Some(role.lives_refusal.clone().unwrap_or_default());
    }
    role.census.gap().or_else(|| {
        let threads = ledger.closed(index).threads;
        let processes = ledger.roles[index].processes_total;
        (threads > role.census.threads() || processes > role.census.processes()).then(|| {
            "a program that this user may not watch (set-user-ID, or not readable) ran in the tree"
                .into()
        })
    })
}

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
    let sums = ledger.closed(index);
    let gap = incomplete(ledger, index);
    let listed = ledger.take_listed(index);
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
