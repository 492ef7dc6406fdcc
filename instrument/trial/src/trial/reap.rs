//! Reaps processes that have exited, and decides what follows from the exit of a role.

use concurve_probe::control;
use concurve_probe::process::{self, Reaped};
use concurve_probe::task::{Policy, PolicyClass};
use concurve_wire::record::{EndedBy, Exit, OutcomeKind};
use concurve_wire::spec::End;

use super::{Ending, Trial};
use crate::convert;
use crate::ledger::Final;
use crate::orphans;
use crate::role::Role;

/// The policy of a process that has exited, while it leaves its CPU: with a priority above that of the runner, whose
/// policy is given. The runner may have interrupted it on its very last steps, and `wait4` then waits in the kernel,
/// without leaving the CPU, until it has made them. In real time that would be for 0.95 s, until the kernel stops
/// real-time tasks for once. One more is what an ordinary user may be granted, too.
fn leaving(runner: Policy) -> Policy {
    Policy {
        class: PolicyClass::Fifo,
        priority: runner.priority + 1,
    }
}

impl Trial {
    /// Reaps every child that has exited. `now` is when that was noticed.
    pub fn reap(&mut self, now: u64) {
        loop {
            match process::peek_exited() {
                Ok(process::Children::Exited(pid)) => self.reap_one(pid, now),
                Ok(process::Children::Alive) => return,
                Ok(process::Children::None) | Err(_) => {
                    self.childless = true;
                    return;
                }
            }
        }
    }

    fn reap_one(&mut self, pid: u32, now: u64) {
        if self.ledger.is_no_role(pid) {
            return self.reap_readiness_command(pid, now);
        }
        let known = self.ledger.role_of(pid);
        let owner = known.or_else(|| orphans::whose(&self.ledger, &self.host.proc_fs, pid));
        if let Some(index) = owner {
            if known.is_none() {
                self.ledger.adopt(pid, index);
            }
            if let Some(reading) = self.read_zombie(pid) {
                self.ledger.read_final(pid, reading);
            }
        }
        // All accounts of a zombie's threads have arrived by now.
        self.take_exits(true);
        let Some(reaped) = self.take_zombie(pid) else {
            return;
        };
        self.ledger.reap(pid);
        match owner {
            Some(index) => self.roles[index].reaped.add(&reaped.usage),
            None => self.unattributed_cpu_ns += reaped.usage.cpu_ns(),
        }
        let leader = self.roles.iter().position(|role| role.pid == Some(pid));
        if let Some(index) = leader {
            self.role_exited(index, convert::exit(reaped.exit), now);
        }
    }

    /// Takes a process that has exited from the kernel.
    pub(super) fn take_zombie(&self, pid: u32) -> Option<Reaped> {
        if !self.host.absent.contains_key("real_time") {
            // Where it is refused, reaping takes longer.
            if let Ok(Some(runner)) = control::policy(std::process::id()) {
                let _ = control::set_policy(pid, leaving(runner));
            }
        }
        process::reap(pid).ok()
    }

    fn read_zombie(&self, pid: u32) -> Option<Final> {
        let proc_fs = &self.host.proc_fs;
        let stat = proc_fs.stat(pid).ok()?;
        // Before the account of its first thread, which may still be leaving its CPU: what that uses until then is no
        // unseen thread's.
        let process_ns = process::cpu_ns(pid);
        let switches = match self.ledger.exits_granted {
            // The switches stand in the exit account, or else in the status.
            true => None,
            false => proc_fs.thread_status(pid, pid).ok(),
        };
        Some(Final {
            name: stat.name,
            nice: stat.nice,
            policy: stat.policy.map(convert::policy),
            schedstat: proc_fs.thread_schedstat(pid, pid).ok()?,
            switches: switches
                .and_then(|status| status.voluntary_switches.zip(status.involuntary_switches)),
            migrations: proc_fs.thread_migrations(pid, pid).ok(),
            process_ns,
            children_ns: stat.children_ticks * process::tick_ns(),
        })
    }

    fn role_exited(&mut self, index: usize, exit: Exit, now: u64) {
        self.check_exec(index);
        self.receive_report(index, now);
        let reading = self.roles[index]
            .phases
            .any_open()
            .then(|| self.reading(index, now));
        let role = &mut self.roles[index];
        role.exited_ns = Some(now);
        role.exit = (!role.exec_failed && role.released_ns.is_some()).then_some(exit);
        role.ended_by.get_or_insert(EndedBy::Itself);
        role.drain_output();
        if let Some(reading) = reading {
            role.phases.end(&reading);
        }
        if self.ending != Ending::NotYet {
            return;
        }
        let role = &self.roles[index];
        let serving = role.spec.end == End::Serve;
        if exit != Exit::Code(0) || serving {
            // A role that was not ready yet has failed to become ready.
            let kind = match role.ready() {
                true => OutcomeKind::ProgramFailed,
                false => OutcomeKind::NotReady,
            };
            let message = failure_message(role, exit);
            return self.fail(kind, index, message);
        }
        if !role.ready() {
            let message = format!("exited with 0 before it was ready: it {}", role.awaited());
            return self.fail(OutcomeKind::NotReady, index, message);
        }
        if self.exit_roles_done() {
            self.stop_serving_roles();
        }
    }

    fn exit_roles_done(&self) -> bool {
        let mut roles = self.roles.iter();
        roles.all(|role| role.spec.end == End::Serve || role.exited())
    }
}

fn failure_message(role: &Role, exit: Exit) -> String {
    let how = match exit {
        Exit::Code(code) => format!("exited with {code}"),
        Exit::Signal(signal) => format!("was killed by {}", signal_name(signal)),
    };
    let early = match (role.spec.end, role.ready()) {
        (_, false) => " before it was ready",
        (End::Serve, true) => " before the others were done",
        (End::Exit, true) => "",
    };
    let (said, wrote) = (&role.stderr.excerpt, &role.stdout.excerpt);
    let said = match (said.telling_line(), wrote.telling_line()) {
        (Some(line), _) => format!("its standard error: {line}"),
        // As programs do that print their usage there.
        (None, Some(line)) => {
            format!("it wrote nothing to standard error; its standard output: {line}")
        }
        (None, None) => "it wrote nothing".to_owned(),
    };
    // What a shell would see of a daemon: the process that was started ends well, another one serves.
    let daemon = match (role.spec.end, exit) {
        (End::Serve, Exit::Code(0)) => {
            "; if it went on in the background, give it its option to stay in the foreground \
             (nginx -g 'daemon off;', redis-server --daemonize no)"
        }
        _ => "",
    };
    format!("{how}{early}; {said}{daemon}")
}

fn signal_name(signal: i32) -> String {
    match nix::sys::signal::Signal::try_from(signal) {
        Ok(known) => format!("{} ({signal})", known.as_str()),
        Err(_) => format!("signal {signal}"),
    }
}
