//! Ends a trial: stops serving roles, and kills processes that remain.

use concurve_clock as clock;
use concurve_probe::{pidfd, process};
use concurve_wire::record::{EndedBy, Outcome, OutcomeKind};
use concurve_wire::spec::End;
use nix::sys::signal::Signal;

use super::{Ending, Trial};
use crate::orphans;

impl Trial {
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

    /// Sends SIGTERM to serving roles; SIGKILL follows after the grace period.
    pub fn stop_serving_roles(&mut self) {
        if self.ending != Ending::NotYet {
            return;
        }
        self.detach(clock::monotonic_ns());
        let until_ns = clock::monotonic_ns() + self.spec.stop_grace_ns;
        self.ending = Ending::Stopping { until_ns };
        for role in &mut self.roles {
            let serving = role.spec.end == End::Serve && role.released_ns.is_some();
            if let Some(pid) = role.pid.filter(|_| serving && !role.exited()) {
                role.ended_by = Some(EndedBy::Stopped);
                let _ = process::kill_group(pid, Signal::SIGTERM);
            }
        }
    }

    pub fn kill_everything(&mut self) {
        if self.ending == Ending::NotYet {
            self.detach(clock::monotonic_ns());
        }
        self.ending = Ending::Killing;
        for role in &mut self.roles {
            if role.pid.is_some() && role.running() {
                // Also a serving role that did not end within the grace period.
                role.ended_by = Some(EndedBy::Killed);
            }
        }
    }

    /// Advances the end of the trial by one step. `now` decides whether limits have passed.
    pub fn advance_end(&mut self, now: u64) {
        if let Ending::Stopping { until_ns } = self.ending {
            let mut roles = self.roles.iter();
            let stopping = roles.any(|role| {
                role.running() && role.spec.end == End::Serve && role.released_ns.is_some()
            });
            if now >= until_ns || !stopping {
                self.kill_everything();
            } else {
                // The grace period is for serving roles alone.
                for index in 0..self.roles.len() {
                    if self.roles[index].running() && self.roles[index].spec.end == End::Exit {
                        self.kill_tree_of(index);
                    }
                }
            }
        }
        if self.ending == Ending::Killing {
            self.kill_all();
        } else if !self.childless {
            for index in 0..self.roles.len() {
                if self.roles[index].exited() {
                    self.kill_stragglers(index);
                }
            }
        }
    }

    /// Whether a process is being killed, so that the loop must check again soon.
    pub fn killing(&self) -> bool {
        let done = |role: &crate::role::Role| role.exited();
        !self.childless && (self.ending != Ending::NotYet || self.roles.iter().any(done))
    }

    fn kill_all(&mut self) {
        // Stragglers first, while they can still be distinguished from the others.
        for index in 0..self.roles.len() {
            if self.roles[index].exited() {
                self.kill_stragglers(index);
            }
        }
        let own = std::process::id();
        for pid in self.host.proc_fs.descendants(own) {
            self.kill_descendant(pid, own);
        }
    }

    fn kill_tree_of(&mut self, index: usize) {
        if let Some(pid) = self.roles[index].pid {
            for descendant in self.host.proc_fs.descendants(pid) {
                self.kill_descendant(descendant, std::process::id());
            }
            // It has not been waited for, so its number is still its own.
            let _ = process::kill(pid, Signal::SIGKILL);
        }
    }

    /// Kills a process that was seen below this one; not another one that has got its number since. Whether
    /// one was killed.
    fn kill_descendant(&self, pid: u32, own: u32) -> bool {
        pidfd::kill_if(pid, || self.host.proc_fs.descends_from(pid, own))
    }

    /// Kills the processes that a role has left behind when its first process exited.
    fn kill_stragglers(&mut self, index: usize) {
        if self.roles[index].pid.is_none() {
            return;
        }
        let proc_fs = &self.host.proc_fs;
        for (pid, role) in orphans::unclaimed_children(&self.ledger, proc_fs) {
            self.ledger.adopt(pid, role);
        }
        let own = std::process::id();
        let roots = proc_fs
            .children_of_thread(own, own)
            .or_else(|_| proc_fs.children(own));
        let leader = self.roles[index].pid;
        for root in roots.unwrap_or_default() {
            if Some(root) == leader || self.ledger.role_of(root) != Some(index) {
                continue;
            }
            let mut tree = proc_fs.descendants(root);
            tree.push(root);
            for pid in tree {
                if self.ledger.role_of(pid).is_none() {
                    self.ledger.adopt(pid, index);
                }
                let alive = proc_fs.stat(pid).is_ok_and(|stat| stat.state != 'Z');
                if alive && self.kill_descendant(pid, own) && self.ledger.condemn(pid) {
                    self.roles[index].stragglers_killed += 1;
                }
            }
        }
    }
}
