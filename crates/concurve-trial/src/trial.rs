//! One running trial: its roles, its accounts, and how it is going to end.

use concurve_probe::taskstats::Received;
use concurve_probe::{clock, process};
use concurve_wire::record::{EndedBy, Exit, Outcome, OutcomeKind};
use concurve_wire::report::{PhaseLine, ReportLine};
use concurve_wire::spec::{End, Ready, TrialSpec};

use crate::host::Host;
use crate::launch;
use crate::ledger::{Final, Ledger};
use crate::machine::Snapshot;
use crate::phases::Reading;
use crate::role::{self, Role};
use crate::sampler::{self, Sampler};

/// How often the perf rings are emptied: they hold what all CPUs can bring about meanwhile, many
/// times over. A look costs a few loads.
const RINGS_INTERVAL_NS: u64 = 10_000_000;

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

    /// Starts every role whose turn has come: in the order of the spec, after the earlier ones
    /// are ready and those it waits for have exited.
    pub fn start_due_roles(&mut self) {
        while self.ending == Ending::NotYet {
            let Some(next) = self.roles.iter().position(|role| role.pid.is_none()) else {
                return;
            };
            let exited = |name: &String| {
                let mut roles = self.roles.iter();
                roles.any(|role| role.spec.name == *name && role.exited())
            };
            let ready = self.roles[..next].iter().all(|role| role.ready);
            if !ready || !self.roles[next].spec.after.iter().all(exited) {
                return;
            }
            self.start(next);
        }
    }

    fn start(&mut self, index: usize) {
        let role = &mut self.roles[index];
        let suspended = match launch::suspend(role, &self.spec.trial) {
            Ok(suspended) => suspended,
            Err(problem) => {
                self.childless = false;
                return self.fail(problem.kind, index, problem.message);
            }
        };
        self.childless = false;
        let pid = suspended.pid();
        self.ledger.adopt(pid, index);
        if let Err(problem) = launch::control(role, &suspended, &self.host.proc_fs) {
            return self.fail(problem.kind, index, problem.message);
        }
        if self.first_release_ns.is_none() {
            self.machine_begin = Some(Snapshot::take(&self.host.proc_fs, self.spec.roles.len()));
            self.runner_cpu_begin_ns = clock::process_cpu_ns();
            self.started_unix_ns = clock::realtime_ns();
        }
        let now = clock::monotonic_ns();
        match suspended.release() {
            Ok(news) => role.exec_news = Some(news),
            Err(error) => return self.fail(OutcomeKind::ExecFailed, index, error.to_string()),
        }
        role.released_ns = Some(now);
        self.ledger.born(pid, now);
        role.ready = role.spec.ready == Ready::Launch;
        self.first_release_ns.get_or_insert(now);
        self.sampler.start(now);
    }

    /// Notes the first failure and begins to end the trial.
    pub fn fail(&mut self, kind: OutcomeKind, index: usize, message: String) {
        let name = self.spec.roles[index].name.clone();
        self.note_failure(kind, Some(name), message);
        for role in &mut self.roles {
            if role.running() && (role.spec.end == End::Exit || role.released_ns.is_none()) {
                role.ended_by.get_or_insert(EndedBy::Killed);
            }
        }
        self.stop_serving_roles();
    }

    /// Kills everything at once.
    pub fn abort(&mut self, kind: OutcomeKind, message: String) {
        if self.ending == Ending::NotYet {
            self.note_failure(kind, None, message);
        }
        self.kill_everything();
    }

    fn note_failure(&mut self, kind: OutcomeKind, role: Option<String>, message: String) {
        self.outcome.get_or_insert(Outcome {
            kind,
            role,
            message: Some(message),
        });
    }

    /// SIGTERM to what serves; SIGKILL follows when the grace is over.
    pub fn stop_serving_roles(&mut self) {
        if self.ending != Ending::NotYet {
            return;
        }
        let until_ns = clock::monotonic_ns() + self.spec.stop_grace_ns;
        self.ending = Ending::Stopping { until_ns };
        for role in &mut self.roles {
            let serving = role.spec.end == End::Serve && role.released_ns.is_some();
            if let Some(pid) = role.pid.filter(|_| serving && !role.exited()) {
                role.ended_by = Some(EndedBy::Stopped);
                let _ = process::kill_group(pid, libc::SIGTERM);
            }
        }
    }

    pub fn kill_everything(&mut self) {
        self.ending = Ending::Killing;
        for role in &mut self.roles {
            if role.running() {
                // A serving role that outlives its grace has been killed too.
                role.ended_by = Some(EndedBy::Killed);
            }
        }
    }

    /// Buries every child that has exited. `now` is when that was noticed.
    pub fn bury(&mut self, now: u64) {
        loop {
            match process::peek_exited() {
                Ok(process::Children::Exited(pid)) => self.bury_one(pid, now),
                Ok(process::Children::Alive) => return,
                Ok(process::Children::None) | Err(_) => {
                    self.childless = true;
                    return;
                }
            }
        }
    }

    fn bury_one(&mut self, pid: u32, now: u64) {
        let known = self.ledger.role_of(pid);
        let owner = known.or_else(|| sampler::whose(&self.ledger, &self.host.proc_fs, pid));
        if let Some(index) = owner {
            if known.is_none() {
                self.ledger.adopt(pid, index);
            }
            if let Some(reading) = self.read_zombie(pid) {
                self.ledger.read_final(pid, reading);
            }
        }
        // Of a zombie everything has arrived.
        self.take_exits(true);
        let Ok(reaped) = process::reap(pid) else {
            return;
        };
        self.ledger.bury(pid);
        match owner {
            Some(index) => self.roles[index].buried.add(&reaped),
            None => self.unattributed_cpu_ns += reaped.user_ns + reaped.system_ns,
        }
        let leader = self.roles.iter().position(|role| role.pid == Some(pid));
        if let Some(index) = leader {
            self.role_exited(index, reaped.exit, now);
        }
    }

    fn read_zombie(&self, pid: u32) -> Option<Final> {
        let proc_fs = &self.host.proc_fs;
        let stat = proc_fs.stat(pid).ok()?;
        let switches = match self.ledger.exits_granted {
            // The exit account has them, or the status does.
            true => None,
            false => proc_fs.thread_status(pid, pid).ok(),
        };
        Some(Final {
            name: stat.name,
            nice: stat.nice,
            policy: stat.policy,
            schedstat: proc_fs.thread_schedstat(pid, pid).ok()?,
            switches: switches
                .and_then(|status| status.voluntary_switches.zip(status.involuntary_switches)),
            migrations: proc_fs.thread_migrations(pid, pid).ok(),
        })
    }

    /// Takes the exit accounts that wait, what the exiting threads had counted, and births and
    /// deaths. With `now_or_never` all exits are booked at once.
    pub fn take_exits(&mut self, now_or_never: bool) {
        self.sampler.collect_waits(&mut self.ledger);
        self.receive_exits();
        self.take_rings(clock::monotonic_ns());
        self.ledger.settle(now_or_never);
    }

    /// When the rings are looked into at the latest, if there are any.
    pub fn rings_due_ns(&self) -> Option<u64> {
        let mut roles = self.roles.iter();
        let any = roles.any(|role| role.counter.is_some() || role.lives.is_some());
        any.then_some(self.rings_taken_ns + RINGS_INTERVAL_NS)
    }

    /// Takes what exiting threads had counted, and births and deaths.
    pub fn take_rings(&mut self, now: u64) {
        self.rings_taken_ns = now;
        for role in &mut self.roles {
            if let Some(counter) = &mut role.counter {
                let per_thread = counter.reads_per_thread();
                self.ledger.reads(counter.take_reads(), per_thread);
            }
            if let Some(lives) = &mut role.lives {
                let lives = lives.take();
                self.ledger.live(&lives.lives);
                role.census.add(lives);
            }
        }
    }

    fn receive_exits(&mut self) {
        let Some((listener, _)) = &mut self.host.taskstats else {
            return;
        };
        loop {
            match listener.receive() {
                Ok(Received::Accounts(accounts)) => self.ledger.exits(accounts),
                Ok(Received::Lost) => self.ledger.exits_lost = true,
                Ok(Received::Nothing) => return,
                Err(error) => {
                    self.ledger.exits_lost = true;
                    let reason = error.to_string();
                    self.host.absent.insert("taskstats".into(), reason);
                    return;
                }
            }
        }
    }

    fn role_exited(&mut self, index: usize, exit: Exit, now: u64) {
        self.hear_exec(index);
        self.hear_report(index, now);
        let reading = self.roles[index]
            .phases
            .any_open()
            .then(|| self.reading(index, now));
        let role = &mut self.roles[index];
        role.exited_ns = Some(now);
        role.exit = (!role.exec_failed && role.released_ns.is_some()).then_some(exit);
        role.ended_by.get_or_insert(EndedBy::Itself);
        role.stderr.drain();
        if let Some(reading) = reading {
            role.phases.end(&reading);
        }
        if self.ending != Ending::NotYet {
            return;
        }
        let role = &self.roles[index];
        let serving = role.spec.end == End::Serve;
        if exit != Exit::Code(0) || serving {
            // A role that never was ready failed at that.
            let kind = match role.ready {
                true => OutcomeKind::ProgramFailed,
                false => OutcomeKind::NotReady,
            };
            let message = failure_message(role, exit);
            return self.fail(kind, index, message);
        }
        if !role.ready {
            let message = "exited with 0 before it wrote {\"ready\":true} to its report channel";
            return self.fail(OutcomeKind::NotReady, index, message.into());
        }
        if self.exit_roles_done() {
            self.stop_serving_roles();
        }
    }

    fn exit_roles_done(&self) -> bool {
        let mut roles = self.roles.iter();
        roles.all(|role| role.spec.end == End::Serve || role.exited())
    }

    /// Listens whether the exec failed.
    pub fn hear_exec(&mut self, index: usize) {
        let role = &mut self.roles[index];
        let Some(mut news) = role.exec_news.take() else {
            return;
        };
        if let Some(failure) = news.read() {
            role.exec_failed = true;
            let problem = launch::not_executed(role, &failure);
            self.fail(problem.kind, index, problem.message);
        }
    }

    /// Takes what a role has written to its report channel.
    pub fn hear_report(&mut self, index: usize, now: u64) {
        let role = &mut self.roles[index];
        let mut lines = Vec::new();
        let channel = &mut role.channel;
        role::drain(&mut role.report, |chunk| lines.extend(channel.push(chunk)));
        if role.report.is_none() {
            lines.extend(role.channel.finish());
        }
        for (number, line) in lines {
            self.take_line(index, number, line, now);
        }
    }

    fn take_line(&mut self, index: usize, number: u64, line: ReportLine, now: u64) {
        match line {
            ReportLine::Phase(line) => self.take_edge(index, number, &line, now),
            ReportLine::Ready(line) => self.roles[index].ready |= line.ready,
            ReportLine::Indicator(line) => self.roles[index].indicators.push(line),
            ReportLine::Histogram(line) => self.roles[index].histograms.push(line),
            ReportLine::Fact(line) => {
                self.roles[index].facts.insert(line.fact, line.value);
            }
        }
    }
}

impl Trial {
    /// Takes an edge of a phase. That of a role which ends by itself is one of the roles that serve,
    /// too: what they used meanwhile is what its work has cost them.
    fn take_edge(&mut self, index: usize, number: u64, line: &PhaseLine, now: u64) {
        if self.roles[index].spec.end == End::Exit {
            let client = self.roles[index].spec.name.clone();
            for server in 0..self.roles.len() {
                if self.roles[server].spec.end == End::Serve && self.roles[server].running() {
                    let reading = self.timed_reading(server, now);
                    self.roles[server].phases.edge_of(&client, line, reading);
                }
            }
        }
        let reading = self.timed_reading(index, now);
        let role = &mut self.roles[index];
        if let Err(message) = role.phases.edge(line, reading) {
            role.channel.refuse(number, message, &line.phase);
        }
    }

    /// A reading that says when the probes had been read.
    fn timed_reading(&mut self, index: usize, now: u64) -> Reading {
        let mut reading = self.reading(index, now);
        reading.read_ns = clock::monotonic_ns();
        reading
    }
}

fn failure_message(role: &Role, exit: Exit) -> String {
    let how = match exit {
        Exit::Code(code) => format!("exited with {code}"),
        Exit::Signal(signal) => format!("was killed by {}", signal_name(signal)),
    };
    let early = match (role.spec.end, role.ready) {
        (_, false) => " before it was ready",
        (End::Serve, true) => " before the others were done",
        (End::Exit, true) => "",
    };
    match role.stderr.excerpt.telling_line() {
        Some(line) => format!("{how}{early}; its standard error: {line}"),
        None => format!("{how}{early}; it wrote nothing to standard error"),
    }
}

fn signal_name(signal: i32) -> String {
    match nix::sys::signal::Signal::try_from(signal) {
        Ok(known) => format!("{} ({signal})", known.as_str()),
        Err(_) => format!("signal {signal}"),
    }
}
