//! What the threads of all roles waited for, by samples, and why samples are missing.

use std::collections::BTreeMap;

use concurve_probe::proc_fs::ProcFs;
use concurve_probe::syscall::Kind;
use concurve_sites::Samples;
use concurve_wire::record::{Absent, RoleRecord, Waits};

use crate::ledger::Ledger;
use crate::thread_timelines::Following;
use crate::waits::runtimes::{GoReading, RuntimeTally};
use crate::waits::thread::{Observation, SampledThread, WaitSamplerThread};
use crate::waits::{self, Activity, Tally};

const UNSEEN_ROLE: &str = "too short: threads are sampled from their second sample on";
const UNSEEN_PHASE: &str = "no sample of its threads fell into it";
const UNSEEN_THREAD: &str = "fewer than two samples fell into its life";

/// The wait samples of all roles.
#[derive(Debug)]
pub struct WaitSampling {
    thread: Option<WaitSamplerThread>,
    /// Why the sampling thread could not be started.
    failure: Option<String>,
    roles: Vec<RoleWaits>,
    stacks_cpu_ns: u64,
}

/// The wait samples of one role.
#[derive(Debug, Default)]
struct RoleWaits {
    tally: Tally,
    refused: u64,
    refusal: Option<String>,
    runtime: RuntimeTally,
    calls: BTreeMap<&'static str, u64>,
    stacks: Samples,
}

impl WaitSampling {
    pub fn new(roles: usize) -> Self {
        Self {
            thread: None,
            failure: None,
            stacks_cpu_ns: 0,
            roles: std::iter::repeat_with(RoleWaits::default)
                .take(roles)
                .collect(),
        }
    }

    /// Requests a sample of these threads, with stacks for so much CPU time. The sampling thread starts with
    /// the first request, so short programs do without it.
    pub fn request(&mut self, threads: Vec<SampledThread>, stacks_ns: u64, proc_fs: &ProcFs) {
        if threads.is_empty() || self.failure.is_some() {
            return;
        }
        if self.thread.is_none() {
            match WaitSamplerThread::start(proc_fs) {
                Ok(thread) => self.thread = Some(thread),
                Err(error) => self.failure = Some(format!("start the watching thread: {error}")),
            }
        }
        if let Some(thread) = &mut self.thread {
            thread.request(threads, stacks_ns);
        }
    }

    /// Ends the sampling thread, after the sample that is under way. What it sends is still counted.
    pub fn release(&mut self) {
        if let Some(thread) = &mut self.thread {
            thread.release();
        }
    }

    /// Counts the sample that has arrived, if any. Returns the CPU time that it took. Of roles that are not
    /// `loaded` goroutines are not counted.
    pub fn collect(
        &mut self,
        ledger: &mut Ledger,
        following: &mut Following,
        loaded: &[bool],
    ) -> u64 {
        let Some(sample) = self.thread.as_mut().and_then(WaitSamplerThread::take) else {
            return 0;
        };
        for (role, name) in sample.calls {
            *self.roles[role].calls.entry(name).or_default() += 1;
        }
        for (role, readings) in sample.runtimes {
            let tally = &mut self.roles[role].runtime;
            match loaded[role] {
                true => tally.add(readings),
                false => tally.add(readings.into_iter().map(GoReading::without_load)),
            }
        }
        for (role, tid, captured) in sample.stacks {
            if let Some((tid, number)) = tid.zip(captured.number()) {
                following.waits_at(role, tid, number);
            }
            self.roles[role].stacks.add(captured);
        }
        self.stacks_cpu_ns += sample.stacks_cpu_ns;
        for thread in alone(&sample.observations) {
            let living = &mut ledger.roles[thread.role].living;
            if let Some(seen) = living.get_mut(&thread.tid) {
                seen.waits.add_alone();
            }
            self.roles[thread.role].tally.add_alone();
        }
        for (thread, observation) in sample.observations {
            let role = &mut self.roles[thread.role];
            let living = &mut ledger.roles[thread.role].living;
            let own = living.get_mut(&thread.tid).map(|seen| &mut seen.waits);
            match observation {
                Observation::Seen(activity) => {
                    following.seen(thread.role, thread.tid, activity);
                    role.tally.add(thread.pid, thread.tid, activity);
                    own.into_iter().for_each(|waits| waits.add(activity));
                }
                Observation::Refused(reason) => {
                    role.refused += 1;
                    role.refusal.get_or_insert(reason);
                }
            }
        }
        sample.cpu_ns
    }

    /// CPU time that copying stacks took; none if none was copied.
    pub fn sites_cpu_ns(&self) -> Option<u64> {
        (self.stacks_cpu_ns > 0).then_some(self.stacks_cpu_ns)
    }

    /// The stacks of each role, to be kept no longer here.
    pub fn take_samples(&mut self) -> Vec<Samples> {
        let roles = self.roles.iter_mut();
        roles.map(|role| std::mem::take(&mut role.stacks)).collect()
    }

    /// Whether any sample has arrived.
    pub fn any(&self) -> bool {
        let mut roles = self.roles.iter();
        roles.any(|role| role.tally.finish().is_some())
    }

    pub fn tally(&self, role: usize) -> &Tally {
        &self.roles[role].tally
    }

    /// Completes the record of a role, its phases and its listed threads with their waits, or with
    /// the reason why they are missing.
    pub fn write_to(&self, role: usize, processes: u64, record: &mut RoleRecord) {
        let waits = &self.roles[role];
        let refusal = waits.refusal.as_ref().or(self.failure.as_ref());
        record.waits = waits.tally.finish();
        if let Some(found) = &mut record.waits {
            let calls = waits.calls.iter();
            found.calls = calls
                .map(|(name, count)| ((*name).into(), *count))
                .collect();
        }
        waits.note_gaps(refusal, &mut record.absent);
        let whole = record.waits.iter_mut();
        let phases = record.phases.iter_mut().map(|phase| &mut phase.waits);
        for waits in whole.chain(phases.flatten()) {
            if processes < 2 {
                waits::of_one_process(waits);
            }
        }
        for phase in &mut record.phases {
            explain(&phase.waits, refusal, UNSEEN_PHASE, &mut phase.absent);
        }
        record.runtime = waits.runtime.finish();
        if let Some(reason) = waits.runtime.refusal() {
            record.absent.insert("runtime".into(), reason.into());
        }
        let words = waits.tally.words_of_threads();
        for thread in &mut record.threads.listed {
            explain(&thread.waits, refusal, UNSEEN_THREAD, &mut thread.absent);
            if let Some(waits) = &mut thread.waits {
                waits.futex_words = words.get(&thread.tid).copied().unwrap_or_default();
            }
        }
        explain(&record.waits, refusal, UNSEEN_ROLE, &mut record.absent);
    }
}

impl RoleWaits {
    /// Says in the record which readings are missing.
    fn note_gaps(&self, refusal: Option<&String>, absent: &mut Absent) {
        if let Some(reason) = refusal.filter(|_| self.refused > 0) {
            let text = format!("without {} readings that failed: {reason}", self.refused);
            absent.insert("waits".into(), text);
        }
        if self.tally.left_out > 0 {
            let text = format!(
                "a lower bound: {} readings at further words were not counted",
                self.tally.left_out
            );
            absent.insert("futex_words".into(), text);
        }
    }
}

/// The threads that were the only ones of their role that ran, while another one waited for something
/// other than a timer.
fn alone(observations: &[(SampledThread, Observation)]) -> Vec<SampledThread> {
    let mut roles: BTreeMap<usize, (Vec<SampledThread>, usize)> = BTreeMap::new();
    for (thread, observation) in observations {
        let (running, waiting) = roles.entry(thread.role).or_default();
        match observation {
            Observation::Seen(Activity::Running) => running.push(*thread),
            Observation::Seen(Activity::Waiting(Kind::Sleep)) | Observation::Refused(_) => {}
            Observation::Seen(_) => *waiting += 1,
        }
    }
    let alone = |(running, waiting): (Vec<SampledThread>, usize)| match running.as_slice() {
        [one] if waiting > 0 => Some(*one),
        _ => None,
    };
    roles.into_values().filter_map(alone).collect()
}

/// Says in the record why waits are missing.
fn explain(waits: &Option<Waits>, refusal: Option<&String>, unseen: &str, absent: &mut Absent) {
    if waits.is_none() {
        let reason = refusal.map_or(unseen, String::as_str);
        absent.insert("waits".into(), reason.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: [u32; 0] = [];

    fn seen(role: usize, tid: u32, activity: Activity) -> (SampledThread, Observation) {
        let thread = SampledThread {
            role,
            pid: 1,
            tid,
            rests: false,
        };
        (thread, Observation::Seen(activity))
    }

    fn tids(observations: &[(SampledThread, Observation)]) -> Vec<u32> {
        alone(observations)
            .iter()
            .map(|thread| thread.tid)
            .collect()
    }

    #[test]
    fn a_thread_runs_alone_while_others_of_its_role_wait() {
        let waits = |tid| seen(0, tid, Activity::Futex(None));
        let runs = |tid| seen(0, tid, Activity::Running);
        assert_eq!(tids(&[runs(1), waits(2), waits(3)]), [1]);
        assert_eq!(tids(&[runs(1), runs(2), waits(3)]), NOBODY);
        assert_eq!(tids(&[runs(1)]), NOBODY, "nobody waits");
        assert_eq!(tids(&[waits(1), waits(2)]), NOBODY);
        let asleep = seen(0, 2, Activity::Waiting(Kind::Sleep));
        assert_eq!(tids(&[runs(1), asleep]), NOBODY, "it waits for a timer");
        let elsewhere = seen(1, 9, Activity::Running);
        assert_eq!(tids(&[runs(1), waits(2), elsewhere]), [1]);
    }
}
