//! Asks roles from outside whether they are ready.

use super::{Ending, Trial};

impl Trial {
    /// When the next attempt is due, or a role must be ready.
    pub fn readiness_due_ns(&self) -> Option<u64> {
        if self.ending != Ending::NotYet {
            return None;
        }
        let roles = self.roles.iter().filter(|role| role.running());
        roles
            .filter_map(|role| {
                let attempt = role.prober.as_ref().and_then(|prober| prober.due_ns());
                attempt.into_iter().chain(role.ready_until_ns()).min()
            })
            .min()
    }

    /// Makes the attempts that are due.
    pub fn probe_readiness(&mut self, now: u64) {
        if self.ending != Ending::NotYet {
            return;
        }
        for role in &mut self.roles {
            let running = role.running();
            let Some(prober) = role.prober.as_mut().filter(|_| running) else {
                continue;
            };
            if prober.due_ns().is_some_and(|due_ns| due_ns <= now) {
                if prober.attempt(&role.spec, now) {
                    role.prober = None;
                } else if let Some(pid) = prober.command_pid() {
                    self.ledger.set_apart(pid);
                }
            }
        }
    }

    /// Reaps a command that asked whether its role is ready.
    pub fn reap_readiness_command(&mut self, pid: u32, now: u64) {
        let Some(reaped) = self.take_zombie(pid) else {
            return;
        };
        self.ledger.forget_apart(pid);
        self.probing_cpu_ns += reaped.usage.cpu_ns();
        for role in &mut self.roles {
            if let Some(prober) = &mut role.prober
                && prober.command_pid() == Some(pid)
                && prober.exited(reaped.exit, now)
            {
                role.prober = None;
            }
        }
    }
}
