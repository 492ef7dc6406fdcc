//! The counts of a client thread during a task, and when it reports them.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};

use super::session::ScheduledTransaction;
use crate::counts::tally::{Interval, ResourceUsage, Tally};
use crate::error::Error;
use crate::plan::{Plan, Task};
use crate::workload::Ending;

/// A transaction that begins this much after it was due is late.
const LATE_NS: u64 = 1_000_000;

/// A message of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub enum WorkerMessage {
    /// Its sessions are connected.
    Ready,
    /// Its counts of one interval; not reported again at the end.
    Interval(Interval),
    /// The task is done.
    Ended(Box<Tally>),
    #[serde(skip)]
    Failed(Error),
}

/// Counts the transactions of one thread, in one task after the other.
#[derive(Debug)]
pub struct Recorder {
    pub task: Task,
    pub tally: Tally,
    pub measuring: bool,
    /// The first due time that counts.
    first_ns: u64,
    /// The usage of this thread when measuring began.
    before: ResourceUsage,
    /// When the counts of an interval are reported next.
    interval_end_ns: u64,
}

/// What the sessions of a thread have sent, received and waited for so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// How often a session of an engine waited for another one.
    pub waits: u64,
}

impl Recorder {
    /// Before the first task: how long it took to connect each session.
    pub fn new(plan: &Plan, connected_ns: &[u64]) -> Self {
        let mut tally = Tally::new(plan.workload.kinds().len(), connected_ns.len());
        for ns in connected_ns {
            tally.connection_ns.saturating_record((*ns).max(1));
        }
        Self {
            task: Task::NONE,
            tally,
            measuring: false,
            first_ns: 0,
            before: ResourceUsage::default(),
            interval_end_ns: u64::MAX,
        }
    }

    pub fn begin(&mut self, task: Task) {
        self.task = task;
        self.measuring = false;
        self.interval_end_ns = u64::MAX;
        // A task that ends by a number counts transactions that were due after measuring began. One
        // that ends by time counts all that end within it, but none of the task before.
        self.first_ns = match task.ends_by_number() {
            true => task.measure_ns(),
            false => task.begin_ns,
        };
    }

    /// Begins measuring, and reports the counts of an interval, when it is time.
    pub fn advance(
        &mut self,
        now: u64,
        traffic: impl Fn() -> Traffic,
        send: &mut dyn FnMut(WorkerMessage),
    ) {
        if !self.measuring && now >= self.task.measure_ns() {
            self.measuring = true;
            self.tally.begin_ns = self.task.measure_ns();
            self.before = usage(traffic());
            if let Some(interval_ns) = self.task.interval_ns {
                self.interval_end_ns = self.task.measure_ns() + interval_ns;
            }
        }
        if let Some(interval_ns) = self.task.interval_ns
            && now >= self.interval_end_ns
        {
            self.report_interval(interval_ns, send);
            let behind_ns = now - self.interval_end_ns;
            self.interval_end_ns += (behind_ns / interval_ns + 1) * interval_ns;
        }
    }

    /// When the thread must call [`Self::advance`] again.
    pub fn due_ns(&self) -> u64 {
        let measure_ns = match self.measuring {
            true => u64::MAX,
            false => self.task.measure_ns(),
        };
        let interval_ns = self.interval_end_ns;
        measure_ns.min(interval_ns).min(self.task.end_ns())
    }

    /// A transaction begins.
    pub fn begun(&mut self, due_ns: u64, now: u64) {
        if self.measuring {
            let lag_ns = now - due_ns;
            self.tally.late += u64::from(lag_ns > LATE_NS);
            self.tally.lag_ns_max = self.tally.lag_ns_max.max(lag_ns);
        }
    }

    /// A transaction was answered; it counts if it is measured.
    pub fn ended(
        &mut self,
        session: usize,
        transaction: ScheduledTransaction,
        now: u64,
        ending: Ending,
    ) {
        self.tally.note_end(&ending);
        if self.counts(transaction, now) {
            self.tally
                .end(transaction.kind, session, now - transaction.due_ns, ending);
            self.tally.sessions[session].last_ns = now - self.task.measure_ns();
        }
    }

    /// A session is lost, with the transactions that were under way and the number of those that
    /// were not begun.
    pub fn lost(
        &mut self,
        reason: &str,
        under_way: impl Iterator<Item = ScheduledTransaction>,
        remaining: u64,
        now: u64,
    ) {
        *self.tally.lost.entry(reason.to_owned()).or_default() += 1;
        if self.task.ends_by_number() {
            self.tally.not_begun += remaining;
        }
        for transaction in under_way {
            self.tally.in_doubt += 1;
            if self.counts(transaction, now) {
                let kind = format!("connection lost: {reason}");
                self.tally.lose(transaction.kind, kind);
            }
        }
    }

    /// A transaction of an open loop has become due.
    pub fn due(&mut self, skipped: bool) {
        self.tally.due += u64::from(self.measuring);
        self.tally.skipped += u64::from(self.measuring && skipped);
    }

    /// The task is done, with so many transactions under way: returns all counts.
    pub fn finish(
        &mut self,
        now: u64,
        under_way: u64,
        traffic: Traffic,
        send: &mut dyn FnMut(WorkerMessage),
    ) -> Tally {
        self.tally.in_doubt += under_way;
        // Otherwise the run was stopped before anything was measured.
        if self.measuring {
            self.tally.usage = usage(traffic).since(&self.before);
            self.tally.end_ns = now.min(self.task.end_ns());
            if let Some(interval_ns) = self.task.interval_ns {
                self.report_interval(interval_ns, send);
            }
        }
        let new = Tally::new(self.tally.kinds.len(), self.tally.sessions.len());
        std::mem::replace(&mut self.tally, new)
    }

    fn counts(&self, transaction: ScheduledTransaction, now: u64) -> bool {
        self.measuring && transaction.due_ns >= self.first_ns && now <= self.task.end_ns()
    }

    fn report_interval(&mut self, interval_ns: u64, send: &mut dyn FnMut(WorkerMessage)) {
        let begin_ns = self.interval_end_ns - interval_ns;
        let number = (begin_ns - self.task.measure_ns()) / interval_ns;
        send(WorkerMessage::Interval(self.tally.take_interval(number)));
    }
}

/// CPU time of this thread so far, and the traffic of its sessions.
fn usage(traffic: Traffic) -> ResourceUsage {
    let (user_ns, system_ns) = thread_usage_ns();
    ResourceUsage {
        user_ns,
        system_ns,
        bytes_sent: traffic.bytes_sent,
        bytes_received: traffic.bytes_received,
        waits: traffic.waits,
    }
}

/// User and system time of the calling thread so far, in ns.
fn thread_usage_ns() -> (u64, u64) {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("the kernel knows the calling thread");
    let ns = |time: nix::sys::time::TimeVal| time.num_microseconds() as u64 * 1000;
    (ns(usage.user_time()), ns(usage.system_time()))
}
