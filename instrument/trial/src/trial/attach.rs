//! Attaches roles whose processes run already: from here to the end of the trial they are accounted.
//! Nothing is done to them; they never become a role's `pid`, which is what is signalled.

use concurve_clock as clock;
use concurve_probe::others::Others;
use concurve_probe::{control, process, unless_gone};
use concurve_wire::record::OutcomeKind;

use super::Trial;
use crate::attached::{self, Attached};
use crate::convert;
use crate::ledger::{Seen, Sums};

impl Trial {
    /// Attaches a role.
    pub fn attach(&mut self, index: usize) {
        let Some(which) = self.roles[index].spec.attach.clone() else {
            return;
        };
        let attached = match Attached::find(&which, &self.host.proc_fs) {
            Ok(attached) => attached,
            Err(message) => return self.fail(OutcomeKind::ExecFailed, index, message),
        };
        if self.first_release_ns.is_none() {
            self.others = Others::take(&self.host.proc_fs);
        }
        self.begin_machine();
        let pid = attached.pid;
        let asked = self.spec.cache_misses;
        let role = &mut self.roles[index];
        role.controls.cpus = self
            .host
            .proc_fs
            .status(pid)
            .ok()
            .and_then(|status| status.cpus_allowed);
        role.controls.nice = self.host.proc_fs.stat(pid).ok().map(|stat| stat.nice);
        role.controls.policy = control::policy(pid).ok().flatten().map(convert::policy);
        role.counter_refusal = Some(attached::NO_COUNTER.into());
        role.cache_misses = asked.then(|| Err(attached::NO_COUNTER.into()));
        role.lives_refusal = Some(attached::NO_LIVES.into());
        role.samples_refusal = Some(attached::NO_SAMPLES.into());
        role.attached = Some(attached);
        role.reported_ready = true;
        let now = clock::monotonic_ns();
        role.released_ns = Some(now);
        self.first_release_ns.get_or_insert(now);
        let begin = self.timed_reading(index, now);
        let peak = self.ledger.roles[index].baselines.len() as u64;
        self.ledger.roles[index].threads_peak = peak;
        if let Some(attached) = &mut self.roles[index].attached {
            attached.begin = Some(begin);
            attached.note_group_before();
        }
        self.sampler.start(now);
    }

    /// Whether every attached role is still there; fails the trial if not.
    pub fn check_attached(&mut self) {
        if let Some((index, message)) = self.attached_gone(|_| true) {
            self.fail(OutcomeKind::ProgramFailed, index, message);
        }
    }

    /// The same for those whose end no descriptor tells: to be asked with each sample.
    pub fn check_attached_by_sample(&mut self) {
        let cpu_before = clock::thread_cpu_ns();
        let gone = self.attached_gone(|attached| attached.handle.is_none());
        self.sampler.pace.cpu_ns += clock::thread_cpu_ns() - cpu_before;
        if let Some((index, message)) = gone {
            self.fail(OutcomeKind::ProgramFailed, index, message);
        }
    }

    /// The first of these attached roles that is no longer there, and what is to be said of it.
    fn attached_gone(&self, which: impl Fn(&Attached) -> bool) -> Option<(usize, String)> {
        let mut roles = self.roles.iter().enumerate();
        roles.find_map(|(index, role)| {
            let attached = role.attached.as_ref().filter(|_| role.running())?;
            let message = which(attached).then(|| attached.gone(&self.host.proc_fs));
            Some((index, message.flatten()?))
        })
    }

    /// Ends the accounts of attached roles; their processes run on.
    pub fn detach(&mut self, now: u64) {
        if let Some((index, message)) = self.attached_gone(|_| true) {
            let name = self.spec.roles[index].name.clone();
            self.note_failure(OutcomeKind::ProgramFailed, Some(name), message);
        }
        for index in 0..self.roles.len() {
            if self.roles[index].attached.is_none() || self.roles[index].exited() {
                continue;
            }
            let reading = self.timed_reading(index, now);
            self.read_last(index);
            let role = &mut self.roles[index];
            role.phases.end(&reading);
            role.exited_ns = Some(now);
            if let Some(attached) = &mut role.attached {
                attached.end = Some(reading);
            }
        }
    }

    /// Finds the present processes of an attached role, and notes what the older ones have used before. The
    /// error says why there may be more of them, or why that is not known.
    pub fn find_attached(&mut self, index: usize) -> concurve_probe::Result<()> {
        let Some(mut attached) = self.roles[index].attached.take() else {
            return Ok(());
        };
        for pid in attached.take_ended(&self.host.proc_fs) {
            self.ledger.end_unreaped(index, pid);
        }
        let (new, mut missing) = attached.find_new(&self.host.proc_fs);
        for found in new {
            let other = self.ledger.role_of(found.pid);
            if other.is_some_and(|other| other != index) || self.ledger.is_entered(found.pid) {
                continue;
            }
            if found.ended {
                let cpu_ns = process::cpu_ns(found.pid).unwrap_or(0);
                self.ledger.ended_before(found.pid, index, cpu_ns);
                continue;
            }
            self.ledger.adopt(found.pid, index);
            if found.older
                && let Err(error) = self.note_before(index, found.pid)
            {
                attached.forget(found.pid);
                missing.get_or_insert(error);
            }
        }
        self.roles[index].attached = Some(attached);
        missing.map_or(Ok(()), Err)
    }

    fn note_before(&mut self, index: usize, pid: u32) -> concurve_probe::Result<()> {
        let at_ns = clock::monotonic_ns();
        let proc_fs = &self.host.proc_fs;
        let mut living = Sums::default();
        let roster = &mut self.ledger.roles[index];
        let threads = unless_gone(proc_fs.threads(pid))?;
        for tid in threads.unwrap_or_default() {
            let Some(schedstat) = unless_gone(proc_fs.thread_schedstat(pid, tid))? else {
                continue;
            };
            let status = proc_fs.thread_status(pid, tid).unwrap_or_default();
            let counts = status.voluntary_switches.zip(status.involuntary_switches);
            let sums = Sums::read(&schedstat, counts);
            living.add(sums);
            roster.baseline(tid, at_ns, sums);
        }
        let process = self.process_so_far(pid).unwrap_or_else(|| Sums {
            cpu_ns: living.cpu_ns.max(process::cpu_ns(pid).unwrap_or(0)),
            ..living
        });
        let children = unless_gone(self.host.proc_fs.stat(pid))?;
        let roster = &mut self.ledger.roles[index];
        roster.waited_before(pid, children.map_or(0, |stat| stat.children_ticks));
        roster.used_before(pid, process, living);
        Ok(())
    }

    /// Reads every living thread of an attached role once more.
    fn read_last(&mut self, index: usize) {
        let proc_fs = &self.host.proc_fs;
        let processes: Vec<u32> = self.ledger.roles[index].processes.iter().copied().collect();
        for pid in processes {
            for tid in proc_fs.threads(pid).unwrap_or_default() {
                let (Ok(schedstat), Ok(stat)) = (
                    proc_fs.thread_schedstat(pid, tid),
                    proc_fs.thread_stat(pid, tid),
                ) else {
                    continue;
                };
                if self.ledger.just_ended(tid) {
                    continue;
                }
                let status = proc_fs.thread_status(pid, tid).unwrap_or_default();
                let seen = self.ledger.roles[index].living.remove(&tid);
                let seen = Seen {
                    pid,
                    name: stat.name,
                    nice: Some(stat.nice),
                    policy: stat.policy.map(convert::policy),
                    cpus: control::affinity(tid).ok(),
                    schedstat,
                    switches: status.voluntary_switches.zip(status.involuntary_switches),
                    waits: seen.unwrap_or_default().waits,
                };
                self.ledger.see(index, tid, seen);
            }
        }
    }
}
