//! What the threads of all roles waited for, by samples, and why samples are missing.

use concurve_probe::proc_fs::ProcFs;
use concurve_wire::record::{Absent, RoleRecord, Waits};

use crate::ledger::Ledger;
use crate::waits::thread::{Observation, SampledThread, WaitSamplerThread};
use crate::waits::{self, Tally};

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
}

/// The wait samples of one role.
#[derive(Debug, Default)]
struct RoleWaits {
    tally: Tally,
    refused: u64,
    refusal: Option<String>,
}

impl WaitSampling {
    pub fn new(roles: usize) -> Self {
        Self {
            thread: None,
            failure: None,
            roles: std::iter::repeat_with(RoleWaits::default)
                .take(roles)
                .collect(),
        }
    }

    /// Requests a sample of these threads. The sampling thread starts with the first request, so
    /// short programs do without it.
    pub fn request(&mut self, threads: Vec<SampledThread>, proc_fs: &ProcFs) {
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
            thread.request(threads);
        }
    }

    /// Counts the sample that has arrived, if any. Returns the CPU time that it took.
    pub fn collect(&mut self, ledger: &mut Ledger) -> u64 {
        let Some(sample) = self.thread.as_mut().and_then(WaitSamplerThread::take) else {
            return 0;
        };
        for (thread, observation) in sample.observations {
            let role = &mut self.roles[thread.role];
            let living = &mut ledger.roles[thread.role].living;
            let own = living.get_mut(&thread.tid).map(|seen| &mut seen.waits);
            match observation {
                Observation::Seen(activity) => {
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

/// Says in the record why waits are missing.
fn explain(waits: &Option<Waits>, refusal: Option<&String>, unseen: &str, absent: &mut Absent) {
    if waits.is_none() {
        let reason = refusal.map_or(unseen, String::as_str);
        absent.insert("waits".into(), reason.into());
    }
}
