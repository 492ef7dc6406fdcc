//! What is written down of the instrument: what it read from, and what that took.

use concurve_clock as clock;
use concurve_wire::record::{Absent, InstrumentRecord, MachineRecord};

use crate::trial::Trial;

/// Writes down the sources of a trial, and why others are missing.
pub fn record(trial: &mut Trial, runner_cpu_ns: u64, machine: &MachineRecord) -> InstrumentRecord {
    let mut absent = std::mem::take(&mut trial.host.absent);
    note_gaps(trial, &mut absent);
    let pace = &trial.sampler.pace;
    InstrumentRecord {
        samples: pace.samples,
        runner_cpu_ns,
        sampling_cpu_ns: pace.cpu_ns,
        sample_interval_ns: pace.mean_interval_ns(),
        clock_step_ns: clock::monotonic_step_ns(),
        sources: sources(trial, &absent, machine),
        absent,
    }
}

fn sources(trial: &Trial, absent: &Absent, machine: &MachineRecord) -> Vec<String> {
    let any_counter = trial.roles.iter().any(|role| role.counter.is_some());
    let read = [
        ("wait4", true),
        ("taskstats", trial.host.taskstats.is_some()),
        ("perf", any_counter),
        ("real_time", !absent.contains_key("real_time")),
        ("schedstat", trial.sampler.pace.samples > 0),
        ("syscall", trial.sampler.watch.any()),
        ("psi", !machine.psi.is_empty()),
    ];
    let read = read.into_iter().filter(|(_, was_read)| *was_read);
    read.map(|(name, _)| name.to_owned()).collect()
}

/// Why a source has not told all, beside what the host refused at the start.
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
            format!("{ns} ns of CPU time belong to orphans whose role could not be told"),
        );
    }
}
