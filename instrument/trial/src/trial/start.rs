//! The start of roles when their turn has come.

use concurve_clock as clock;
use concurve_wire::record::OutcomeKind;
use concurve_wire::spec::Ready;

use super::{Ending, Trial};
use crate::launch;
use crate::machine::Snapshot;

impl Trial {
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
}
