//! One running trial: its roles, its accounts, and how it is going to end.

mod bury;
mod exits;
mod hear;
mod reading;
mod start;
mod stop;

use concurve_clock as clock;
use concurve_wire::record::Outcome;
use concurve_wire::spec::TrialSpec;

use crate::host::Host;
use crate::ledger::Ledger;
use crate::machine::Snapshot;
use crate::role::Role;
use crate::sampler::Sampler;

/// A trial from its first launch to the burial of its last process.
#[derive(Debug)]
pub struct Trial {
    pub spec: TrialSpec,
    pub host: Host,
    pub roles: Vec<Role>,
    pub ledger: Ledger,
    pub sampler: Sampler,
    pub ending: Ending,
    pub outcome: Option<Outcome>,
    pub first_release_ns: Option<u64>,
    pub started_unix_ns: u64,
    pub machine_begin: Option<Snapshot>,
    pub runner_cpu_begin_ns: u64,
    /// CPU time of buried processes that no role could be found for.
    pub unattributed_cpu_ns: u64,
    pub childless: bool,
    rings_taken_ns: u64,
}

/// How far the end of the trial has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Some exit role is still to run to its end.
    NotYet,
    /// Serving roles have had their SIGTERM; at this time comes SIGKILL.
    Stopping { until_ns: u64 },
    /// Whatever lives is killed until nothing does.
    Killing,
}

impl Trial {
    pub fn new(spec: TrialSpec, host: Host) -> Self {
        let roles: Vec<Role> = spec
            .roles
            .iter()
            .map(|role| Role::new(role.clone(), spec.output_bytes_max))
            .collect();
        let names = spec.roles.iter().map(|role| role.name.clone()).collect();
        Self {
            ledger: Ledger::new(names, spec.threads_listed_max, host.taskstats.is_some()),
            sampler: Sampler::new(spec.sampling, &host.proc_fs, roles.len()),
            roles,
            host,
            ending: Ending::NotYet,
            outcome: None,
            first_release_ns: None,
            started_unix_ns: clock::realtime_ns(),
            machine_begin: None,
            runner_cpu_begin_ns: 0,
            unattributed_cpu_ns: 0,
            childless: true,
            rings_taken_ns: 0,
            spec,
        }
    }

    /// Nothing is left to wait for.
    pub fn over(&self) -> bool {
        self.ending == Ending::Killing && self.childless
    }
}
