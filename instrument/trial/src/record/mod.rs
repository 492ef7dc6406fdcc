//! Makes the record of a finished trial.

mod hot;
mod role;
mod sites;
mod waited_for;

use concurve_clock as clock;
use concurve_probe::core_speed;
use concurve_probe::perf::CacheMisses;
use concurve_sites::Resolver;
use concurve_wire::FORMAT;
use concurve_wire::record::{
    Absent, InstrumentRecord, MachineRecord, Outcome, OutcomeKind, RoleRecord, TrialRecord,
};
use concurve_wire::spec::End;

use crate::convert;
use crate::machine::Snapshot;
use crate::role::Role;
use crate::trial::Trial;

/// Version of this runner.
pub const RUNNER: &str = concat!("concurve-trial ", env!("CARGO_PKG_VERSION"));

/// The record of what was measured.
pub fn write(mut trial: Trial) -> TrialRecord {
    let end_ns = clock::monotonic_ns();
    let runner_cpu_ns = clock::process_cpu_ns() - trial.runner_cpu_begin_ns;
    let first_ns = trial.first_release_ns.unwrap_or(end_ns);
    let machine = machine(&mut trial, first_ns, end_ns, runner_cpu_ns);
    let mut resolver = Resolver::default();
    let sites = sites::take(&mut trial.sampler.waits, &mut resolver);
    let hot = hot::take(&mut trial.roles, &mut resolver);
    let instrument = instrument(&mut trial, runner_cpu_ns, &machine);
    let known = sites.into_iter().zip(hot);
    let Trial {
        spec,
        roles,
        mut ledger,
        mut sampler,
        outcome,
        ..
    } = trial;
    let followed = sampler.following.finish(roles.len());
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
        wall_ns: wall_ns(&roles, first_ns),
        roles: roles
            .into_iter()
            .zip(known.zip(followed))
            .enumerate()
            .map(|(index, (role, ((sites, hot), followed)))| {
                let quota = sampler.quotas[index].finish();
                let record = role::record(role, index, &mut ledger, &sampler.waits, first_ns);
                let thread_timelines = followed.recorded(first_ns, &sites.places);
                let record = RoleRecord {
                    quota,
                    thread_timelines,
                    ..record
                };
                hot.written(sites.written(record))
            })
            .collect(),
        machine,
        instrument,
    }
}

/// What the machine did during the trial; empty if no role was released.
fn machine(trial: &mut Trial, first_ns: u64, end_ns: u64, runner_cpu_ns: u64) -> MachineRecord {
    let Some(begin) = trial.machine_begin.take() else {
        return MachineRecord::default();
    };
    let roles = trial.roles.iter_mut().enumerate();
    let of_roles = roles.map(|(index, role)| role::cpu_time(role, index, &trial.ledger).ns);
    let of_roles: u64 = of_roles.sum();
    let attached = trial.roles.iter();
    let attached = attached.filter_map(|role| role.attached.as_ref()?.cpu_ns());
    let of_roles = of_roles + attached.sum::<u64>();
    let own_cpu_ns = runner_cpu_ns + trial.probing_cpu_ns + trial.unattributed_cpu_ns + of_roles;
    let proc_fs = &trial.host.proc_fs;
    let end = Snapshot::take(proc_fs);
    // One that has ended may still be there, while the kernel takes it apart.
    let is_own = |pid: u32| {
        let mut attached = trial.roles.iter().filter_map(|role| role.attached.as_ref());
        trial.ledger.role_of(pid).is_some() || attached.any(|attached| attached.has(pid))
    };
    let mut timeline = std::mem::take(&mut trial.sampler.timeline);
    timeline.close(end.busy_by_cpu(), end_ns);
    let wall_ns = end_ns - first_ns;
    let mut machine = begin.until(&end, wall_ns, own_cpu_ns, &trial.others, is_own, proc_fs);
    match timeline.recorded(first_ns) {
        Ok(recorded) => machine.cpu_timeline = Some(recorded),
        Err(reason) => {
            machine.absent.insert("cpu_timeline".into(), reason);
        }
    }
    machine.khz = trial.sampler.frequency.mean_khz();
    if machine.khz.is_none() {
        let reason = trial.sampler.frequency.why_absent();
        machine.absent.insert("khz".into(), reason.into());
    }
    note_speed(&mut machine, trial);
    machine
}

/// How fast CPUs ran before the trial, and do now.
fn note_speed(machine: &mut MachineRecord, trial: &mut Trial) {
    let begin = std::mem::replace(&mut trial.speed_begin, Ok(Vec::new()));
    let readings = begin.and_then(|begin| Ok((begin, core_speed::read()?)));
    match readings {
        Ok((begin, end)) => {
            machine.speed_before = begin.into_iter().map(convert::core_speed).collect();
            machine.speed_after = end.into_iter().map(convert::core_speed).collect();
        }
        Err(reason) => {
            machine.absent.insert("speed".into(), reason);
        }
    }
}

fn wall_ns(roles: &[Role], first_ns: u64) -> u64 {
    let exits = roles
        .iter()
        .filter(|role| role.spec.end == End::Exit && role.released_ns.is_some())
        .filter_map(|role| role.exited_ns);
    exits.max().map_or(0, |last| last.saturating_sub(first_ns))
}

/// The sources of the trial, what reading them cost, and why others are missing.
fn instrument(trial: &mut Trial, runner_cpu_ns: u64, machine: &MachineRecord) -> InstrumentRecord {
    let mut absent = std::mem::take(&mut trial.host.absent);
    note_gaps(trial, &mut absent);
    let pace = &trial.sampler.pace;
    InstrumentRecord {
        samples: pace.samples,
        runner_cpu_ns,
        sampling_cpu_ns: pace.cpu_ns,
        sites_cpu_ns: trial.sampler.waits.sites_cpu_ns(),
        sample_interval_ns: pace.mean_interval_ns(),
        clock_step_ns: clock::monotonic_step_ns(),
        sources: sources(trial, &absent, machine),
        absent,
    }
}

fn sources(trial: &Trial, absent: &Absent, machine: &MachineRecord) -> Vec<String> {
    let any_counter = trial.roles.iter().any(|role| role.counter.is_some());
    let mut misses = trial
        .roles
        .iter()
        .filter_map(|role| role.cache_misses.as_ref()?.as_ref().ok());
    let misses = misses.next().map(CacheMisses::has_kernel);
    let read = [
        ("wait4", true),
        ("taskstats", trial.host.taskstats.is_some()),
        ("perf", any_counter),
        ("cache_misses", misses == Some(true)),
        ("cache_misses_user", misses == Some(false)),
        ("real_time", !absent.contains_key("real_time")),
        ("schedstat", trial.sampler.pace.samples > 0),
        ("syscall", trial.sampler.waits.any()),
        (
            "places",
            trial.roles.iter().any(|role| role.samples.is_some()),
        ),
        ("stacks", trial.sampler.waits.sites_cpu_ns().is_some()),
        ("psi", !machine.psi.is_empty()),
    ];
    let read = read.into_iter().filter(|(_, was_read)| *was_read);
    read.map(|(name, _)| name.to_owned()).collect()
}

/// Why a source is incomplete, beside what the host refused at the start.
fn note_gaps(trial: &Trial, absent: &mut Absent) {
    let mut roles = trial.roles.iter();
    if roles.all(|role| role.counter.is_none())
        && let Some(reason) = trial
            .roles
            .iter()
            .find_map(|role| role.counter_refusal.clone())
    {
        absent.insert("perf".into(), reason);
    }
    if trial.ledger.exits_lost {
        let reason = "the kernel lost exits because they came too fast; raise net.core.rmem_max";
        absent.entry("taskstats".into()).or_insert(reason.into());
    }
    if trial.unattributed_cpu_ns > 0 {
        let ns = trial.unattributed_cpu_ns;
        absent.insert(
            "attribution".into(),
            format!("{ns} ns of CPU time belong to orphans whose role is unknown"),
        );
    }
}
