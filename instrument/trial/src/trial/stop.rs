//! Ends a trial: stops serving roles, and kills processes that remain.

use concurve_clock as clock;
use concurve_probe::{pidfd, process};
use concurve_wire::record::{EndedBy, Outcome, OutcomeKind};
use concurve_wire::spec::End;
use nix::sys::signal::Signal;

use super::{Ending, Trial};
use crate::orphans;
use crate::role::Role;

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

    /// Notes a failure, if it is the first.
    pub(super) fn note_failure(
        &mut self,
        kind: OutcomeKind,
        role: Option<String>,
        message: String,
    ) {
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
        self.end_observing();
        let until_ns = clock::monotonic_ns() + self.spec.stop_grace_ns;
        self.ending = Ending::Stopping { until_ns };
        for role in &mut self.roles {
            let serving = role.spec.end == End::Serve && role.released_ns.is_some();
            if let Some(pid) = role.pid.filter(|_| serving && !role.exited()) {
                role.ended_by = Some(EndedBy::Stopped);
                let sent = process::kill_group(pid, Signal::SIGTERM);
                self.survivors.note(pid, &sent);
            }
        }
    }

    pub fn kill_everything(&mut self) {
        if self.ending == Ending::NotYet {
            self.end_observing();
        }
        self.ending = Ending::Killing;
        self.survivors.kill_began(clock::monotonic_ns());
        for role in &mut self.roles {
            if role.pid.is_some() && role.running() {
                // Also a serving role that did not end within the grace period.
                role.ended_by = Some(EndedBy::Killed);
            }
        }
    }

    /// Ends what goes on only while the roles run: the samples, and the accounts of attached roles.
    fn end_observing(&mut self) {
        self.sampler.release();
        self.detach(clock::monotonic_ns());
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
            self.give_up_if_in_vain(now);
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
        let done = |role: &Role| role.exited();
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
        for pid in self.host.proc_fs.descendants(own).found {
            let sent = self.kill_descendant(pid, own);
            self.survivors.note(pid, &sent);
        }
        // Where they could not be listed, too.
        for index in 0..self.roles.len() {
            if self.roles[index].running() {
                self.kill_leader(index);
            }
        }
    }

    /// Kills the first process of a role. It has not been waited for, so its number is still its own.
    fn kill_leader(&mut self, index: usize) {
        if let Some(pid) = self.roles[index].pid {
            let sent = process::kill(pid, Signal::SIGKILL);
            self.survivors.note(pid, &sent);
        }
    }

    /// Ends the trial although processes live, if there is no sense in waiting for them.
    fn give_up_if_in_vain(&mut self, now: u64) {
        if self.childless || !self.survivors.is_due(now) {
            return;
        }
        let proc_fs = &self.host.proc_fs;
        let mut alive = proc_fs.descendants(std::process::id()).found;
        alive.retain(|pid| match proc_fs.stat(*pid) {
            Ok(stat) => stat.state != 'Z',
            Err(error) => !error.is_gone(),
        });
        let Some(said) = self.survivors.give_up(&alive, now) else {
            return;
        };
        let survives = |role: &Role| role.pid.is_some() && role.running();
        let name = self.roles.iter().find(|role| survives(role));
        let name = name.map(|role| role.spec.name.clone());
        match &mut self.outcome {
            Some(outcome) => {
                let before = outcome.message.take();
                let both = before.into_iter().chain([said]).collect::<Vec<_>>();
                outcome.message = Some(both.join("; "));
            }
            None => self.note_failure(OutcomeKind::ProgramFailed, name, said),
        }
        for index in 0..self.roles.len() {
            if survives(&self.roles[index]) {
                self.leave_alive(index, now);
            }
        }
    }

    /// Ends the account of a role whose first process lives on.
    fn leave_alive(&mut self, index: usize, now: u64) {
        let reading = self.reading(index, now);
        let role = &mut self.roles[index];
        role.phases.end(&reading);
        role.exited_ns = Some(now);
        role.ended_by = None;
    }

    fn kill_tree_of(&mut self, index: usize) {
        if let Some(pid) = self.roles[index].pid {
            for descendant in self.host.proc_fs.descendants(pid).found {
                let sent = self.kill_descendant(descendant, std::process::id());
                self.survivors.note(descendant, &sent);
            }
        }
        self.kill_leader(index);
    }

    /// Kills a process that was seen below this one; not another one that has got its number since. Whether
    /// one was killed; the error says why it may not be.
    fn kill_descendant(&self, pid: u32, own: u32) -> concurve_probe::Result<bool> {
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
            let mut tree = proc_fs.descendants(root).found;
            tree.push(root);
            for pid in tree {
                if self.ledger.role_of(pid).is_none() {
                    self.ledger.adopt(pid, index);
                }
                let alive = proc_fs.stat(pid).is_ok_and(|stat| stat.state != 'Z');
                if !alive {
                    continue;
                }
                let sent = self.kill_descendant(pid, own);
                self.survivors.note(pid, &sent);
                if sent.is_ok_and(|killed| killed) && self.ledger.condemn(pid) {
                    self.roles[index].stragglers_killed += 1;
                }
            }
        }
    }
}
