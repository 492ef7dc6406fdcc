//! One running trial: its roles, its accounts, and how it is going to end.

mod accounts;
mod attach;
mod readiness;
mod reap;
mod reports;
mod stop;
mod survivors;

use concurve_clock as clock;
use concurve_probe::core_speed::{self, CoreSpeed};
use concurve_probe::others::Others;
use concurve_wire::record::{Outcome, OutcomeKind};
use concurve_wire::spec::{Ready, TrialSpec};

use crate::events::Events;
use crate::host::Host;
use crate::launch;
use crate::ledger::Ledger;
use crate::machine::Snapshot;
use crate::ready::Prober;
use crate::role::Role;
use crate::sampler::Sampler;
use survivors::Survivors;

/// A trial, until its last process is reaped.
#[derive(Debug)]
pub struct Trial {
    pub spec: TrialSpec,
    pub host: Host,
    pub roles: Vec<Role>,
    pub ledger: Ledger,
    pub sampler: Sampler,
    pub events: Events,
    pub ending: Ending,
    pub outcome: Option<Outcome>,
    pub first_release_ns: Option<u64>,
    pub started_unix_ns: u64,
    pub machine_begin: Option<Snapshot>,
    /// Of CPUs, before the first release.
    pub speed_begin: Result<Vec<CoreSpeed>, String>,
    pub others: Others,
    pub runner_cpu_begin_ns: u64,
    /// CPU time of the commands that ask whether roles are ready.
    pub probing_cpu_ns: u64,
    /// CPU time of reaped processes that belong to no known role.
    pub unattributed_cpu_ns: u64,
    pub childless: bool,
    pub survivors: Survivors,
    rings_taken_ns: u64,
    rings_interval_ns: u64,
}

/// The state of the trial's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// A role that ends by itself has not ended yet.
    NotYet,
    /// Serving roles were sent SIGTERM; at this time they are sent SIGKILL.
    Stopping { until_ns: u64 },
    /// All processes are being killed.
    Killing,
}

impl Trial {
    pub fn new(spec: TrialSpec, host: Host, events: Events) -> Self {
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
            events,
            host,
            ending: Ending::NotYet,
            outcome: None,
            first_release_ns: None,
            started_unix_ns: clock::realtime_ns(),
            machine_begin: None,
            speed_begin: Ok(Vec::new()),
            others: Others::default(),
            runner_cpu_begin_ns: 0,
            probing_cpu_ns: 0,
            unattributed_cpu_ns: 0,
            childless: true,
            survivors: Survivors::default(),
            rings_taken_ns: 0,
            rings_interval_ns: 0,
            spec,
        }
    }

    /// Nothing is left to wait for.
    pub fn over(&self) -> bool {
        self.ending == Ending::Killing && (self.childless || self.survivors.given_up())
    }
}

/// Starts roles when they are due.
impl Trial {
    /// Starts every role that is due: in the order of the spec, when the earlier ones are ready and
    /// those that it waits for have exited.
    pub fn start_due_roles(&mut self) {
        while self.ending == Ending::NotYet {
            let Some(next) = self.roles.iter().position(|role| !role.started()) else {
                return;
            };
            let exited = |name: &String| {
                let mut roles = self.roles.iter();
                roles.any(|role| role.spec.name == *name && role.exited())
            };
            let ready = self.roles[..next].iter().all(Role::ready);
            if !ready || !self.roles[next].spec.after.iter().all(exited) {
                return;
            }
            match self.roles[next].spec.attach {
                Some(_) => self.attach(next),
                None => self.start(next),
            }
        }
    }

    fn start(&mut self, index: usize) {
        let role = &mut self.roles[index];
        match role.spec.ready_probe.as_ref().map(Prober::new).transpose() {
            Ok(prober) => role.prober = prober,
            Err(message) => return self.fail(OutcomeKind::NotReady, index, message),
        }
        // Other processes are read while the child prepares itself: that costs the trial no time.
        let read_others = || {
            if self.first_release_ns.is_none() {
                self.others = Others::take(&self.host.proc_fs);
            }
        };
        let suspended = match launch::suspend(role, &self.spec.trial, read_others) {
            Ok(suspended) => suspended,
            Err(problem) => {
                self.childless = false;
                return self.fail(problem.kind, index, problem.message);
            }
        };
        self.childless = false;
        let pid = suspended.pid();
        self.ledger.adopt(pid, index);
        let misses = self.spec.cache_misses;
        if let Err(problem) = launch::control(role, &suspended, &self.host.proc_fs, misses) {
            return self.fail(problem.kind, index, problem.message);
        }
        self.begin_machine();
        let role = &mut self.roles[index];
        let now = clock::monotonic_ns();
        match suspended.release() {
            Ok(news) => role.exec_news = Some(news),
            Err(error) => return self.fail(OutcomeKind::ExecFailed, index, error.to_string()),
        }
        role.released_ns = Some(now);
        self.ledger.born(pid, now);
        role.reported_ready = role.spec.ready == Ready::Launch;
        self.first_release_ns.get_or_insert(now);
        self.sampler.start(now);
    }

    /// Reads the speed of CPUs and the machine's counters, right before the first role is released.
    fn begin_machine(&mut self) {
        if self.first_release_ns.is_some() {
            return;
        }
        self.speed_begin = core_speed::read();
        let snapshot = Snapshot::take(&self.host.proc_fs);
        let timeline = &mut self.sampler.timeline;
        timeline.begin(snapshot.busy_by_cpu(), clock::monotonic_ns());
        self.machine_begin = Some(snapshot);
        self.runner_cpu_begin_ns = clock::process_cpu_ns();
        self.started_unix_ns = clock::realtime_ns();
    }
}
