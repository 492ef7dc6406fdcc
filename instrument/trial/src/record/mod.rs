//! A finished trial to its record.

mod instrument;
mod role;
mod threads;

use concurve_clock as clock;
use concurve_wire::FORMAT;
use concurve_wire::record::{Absent, MachineRecord, Outcome, OutcomeKind, TrialRecord};
use concurve_wire::spec::End;

use crate::machine::Snapshot;
use crate::role::{Buried, Role};
use crate::trial::Trial;

/// Version of this runner.
pub const RUNNER: &str = concat!("concurve-trial ", env!("CARGO_PKG_VERSION"));

/// Writes down what was measured.
pub fn write(mut trial: Trial) -> TrialRecord {
    let end_ns = clock::monotonic_ns();
    let runner_cpu_ns = clock::process_cpu_ns() - trial.runner_cpu_begin_ns;
    let first_ns = trial.first_release_ns.unwrap_or(end_ns);
    let machine = machine(&mut trial, end_ns - first_ns, runner_cpu_ns);
    let instrument = instrument::record(&mut trial, runner_cpu_ns, &machine);
    let Trial {
        spec,
        roles,
        mut ledger,
        sampler,
        outcome,
        ..
    } = trial;
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
            .enumerate()
            .map(|(index, role)| role::record(role, index, &mut ledger, &sampler.watch, first_ns))
            .collect(),
        machine,
        instrument,
    }
}

/// What the machine did meanwhile; nothing if no role was released.
fn machine(trial: &mut Trial, wall_ns: u64, runner_cpu_ns: u64) -> MachineRecord {
    let Some(begin) = trial.machine_begin.take() else {
        return MachineRecord::default();
    };
    let of_roles: u64 = trial.roles.iter().map(|role| cpu_ns(&role.buried)).sum();
    let own_cpu_ns = runner_cpu_ns + trial.unattributed_cpu_ns + of_roles;
    let proc_fs = &trial.host.proc_fs;
    let end = Snapshot::take(proc_fs, trial.roles.len());
    begin.until(&end, wall_ns, own_cpu_ns, proc_fs)
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

/// What no source could give, with one reason for all.
fn all_absent(names: &[&str], reason: &str) -> Absent {
    let entry = |name: &&str| (name.to_string(), reason.to_owned());
    names.iter().map(entry).collect()
}
