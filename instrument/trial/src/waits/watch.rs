//! What the threads of all roles were seen waiting on so far, and why not where nothing was seen.

use concurve_probe::proc_fs::ProcFs;
use concurve_wire::record::{Absent, RoleRecord, Waits};

use crate::ledger::Ledger;
use crate::waits::watcher::{Observation, Subject, Watcher};
use crate::waits::{self, Tally};

const UNSEEN_ROLE: &str = "too short: threads are looked at from their second sample on";
const UNSEEN_PHASE: &str = "no sample of its threads fell into it";
const UNSEEN_THREAD: &str = "fewer than two samples fell into its life";

/// The watch over all roles.
#[derive(Debug)]
pub struct Watch {
    watcher: Option<Watcher>,
    /// Why there is no watcher.
    failure: Option<String>,
    roles: Vec<Watched>,
}

/// A role under watch.
#[derive(Debug, Default)]
struct Watched {
    tally: Tally,
    refused: u64,
    refusal: Option<String>,
}

impl Watch {
    pub fn new(roles: usize) -> Self {
        Self {
            watcher: None,
            failure: None,
            roles: std::iter::repeat_with(Watched::default)
                .take(roles)
                .collect(),
        }
    }

    /// Orders a look at these threads. The watcher starts with the first: short programs do
    /// without.
    pub fn order(&mut self, subjects: Vec<Subject>, proc_fs: &ProcFs) {
        if subjects.is_empty() || self.failure.is_some() {
            return;
        }
        if self.watcher.is_none() {
            match Watcher::start(proc_fs) {
                Ok(watcher) => self.watcher = Some(watcher),
                Err(error) => self.failure = Some(format!("start the watching thread: {error}")),
            }
        }
        if let Some(watcher) = &mut self.watcher {
            watcher.order(subjects);
        }
    }

    /// Counts what was seen since. Returns the CPU time that it took to look.
    pub fn collect(&mut self, ledger: &mut Ledger) -> u64 {
        let Some(look) = self.watcher.as_mut().and_then(Watcher::take) else {
            return 0;
        };
        for (subject, observation) in look.observations {
            let role = &mut self.roles[subject.role];
            let living = &mut ledger.roles[subject.role].living;
            let thread = living.get_mut(&subject.tid).map(|seen| &mut seen.waits);
            match observation {
                Observation::Seen(sight) => {
                    role.tally.add(subject.pid, subject.tid, sight);
                    thread.into_iter().for_each(|waits| waits.add(sight));
                }
                Observation::Refused(reason) => {
                    role.refused += 1;
                    role.refusal.get_or_insert(reason);
                }
            }
        }
        look.cpu_ns
    }

    /// Any thread was seen.
    pub fn any(&self) -> bool {
        let mut roles = self.roles.iter();
        roles.any(|role| role.tally.finish().is_some())
    }

    pub fn tally(&self, role: usize) -> &Tally {
        &self.roles[role].tally
    }

    /// Writes down what was seen of a role, its phases and its listed threads, or why nothing was.
    pub fn tell(&self, role: usize, processes: u64, record: &mut RoleRecord) {
        let watched = &self.roles[role];
        let refusal = watched.refusal.as_ref().or(self.failure.as_ref());
        record.waits = watched.tally.finish();
        watched.note_gaps(refusal, &mut record.absent);
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
        let words = watched.tally.words_of_threads();
        for thread in &mut record.threads.listed {
            explain(&thread.waits, refusal, UNSEEN_THREAD, &mut thread.absent);
            if let Some(waits) = &mut thread.waits {
                waits.futex_words = words.get(&thread.tid).copied().unwrap_or_default();
            }
        }
        explain(&record.waits, refusal, UNSEEN_ROLE, &mut record.absent);
    }
}

impl Watched {
    /// What was seen is not all where readings were refused or not kept apart.
    fn note_gaps(&self, refusal: Option<&String>, absent: &mut Absent) {
        if let Some(reason) = refusal.filter(|_| self.refused > 0) {
            let text = format!("without {} readings that failed: {reason}", self.refused);
            absent.insert("waits".into(), text);
        }
        if self.tally.left_out > 0 {
            let text = format!(
                "a lower bound: there was no room for {} readings at further words",
                self.tally.left_out
            );
            absent.insert("futex_words".into(), text);
        }
    }
}

/// Gives the reason for waits that are missing.
fn explain(waits: &Option<Waits>, refusal: Option<&String>, unseen: &str, absent: &mut Absent) {
    if waits.is_none() {
        let reason = refusal.map_or(unseen, String::as_str);
        absent.insert("waits".into(), reason.into());
    }
}
