//! What a client thread counts while it does a task, and when it tells of it.

use crate::crew::Said;
use crate::plan::Plan;
use crate::session::Order;
use crate::tally::{Spent, Tally};
use crate::task::Task;
use crate::usage::thread_usage_ns;
use crate::workload::Ending;

/// A request that begins this much after it was due is late.
const LATE_NS: u64 = 1_000_000;

/// The counts of one thread, for one task after the other.
#[derive(Debug)]
pub struct Counting {
    pub task: Task,
    pub tally: Tally,
    pub measuring: bool,
    /// The first due time that counts.
    first_ns: u64,
    /// Of this thread when measuring began.
    before: Spent,
    /// When the counts of an interval are told next.
    interval_end_ns: u64,
}

/// What the sessions of a thread have moved, and met.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Times that another session of an engine was in the way.
    pub waits: u64,
}

impl Counting {
    /// Before the first task: how long it took to connect each session.
    pub fn new(plan: &Plan, connected_ns: &[u64]) -> Self {
        let mut tally = Tally::new(plan.workload.kinds().len(), connected_ns.len());
        for ns in connected_ns {
            tally.connection_ns.saturating_record((*ns).max(1));
        }
        Self {
            task: plan.task(0),
            tally,
            measuring: false,
            first_ns: 0,
            before: Spent::default(),
            interval_end_ns: u64::MAX,
        }
    }

    pub fn begin(&mut self, task: Task) {
        self.task = task;
        self.measuring = false;
        self.interval_end_ns = u64::MAX;
        // By number, each that counts was due when measuring had begun; by time, each that ends
        // while it lasts, but for those of a task before.
        self.first_ns = match task.ends_by_number() {
            true => task.measure_ns(),
            false => task.begin_ns,
        };
    }

    /// Begins measuring, and tells the counts of an interval, when it is time.
    pub fn turn(&mut self, now: u64, moved: impl Fn() -> Moved, say: &mut dyn FnMut(Said)) {
        if !self.measuring && now >= self.task.measure_ns() {
            self.measuring = true;
            self.tally.begin_ns = self.task.measure_ns();
            self.before = spent(moved());
            if let Some(interval_ns) = self.task.interval_ns {
                self.interval_end_ns = self.task.measure_ns() + interval_ns;
            }
        }
        if let Some(interval_ns) = self.task.interval_ns
            && now >= self.interval_end_ns
        {
            self.tell_interval(interval_ns, say);
            let behind_ns = now - self.interval_end_ns;
            self.interval_end_ns += (behind_ns / interval_ns + 1) * interval_ns;
        }
    }

    /// When the thread must turn to its counts again, whatever else is to do.
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

    /// A transaction was answered; it counts if that was while it was measured.
    pub fn ended(&mut self, session: usize, order: Order, now: u64, ending: Ending) {
        self.tally.note_end(&ending);
        if self.counts(order, now) {
            self.tally
                .end(order.kind, session, now - order.due_ns, ending);
            self.tally.sessions[session].last_ns = now - self.task.measure_ns();
        }
    }

    /// A session is lost, with what it had under way and what it had still to do.
    pub fn lost(
        &mut self,
        reason: &str,
        under_way: impl Iterator<Item = Order>,
        remaining: u64,
        now: u64,
    ) {
        *self.tally.lost.entry(reason.to_owned()).or_default() += 1;
        if self.task.ends_by_number() {
            self.tally.not_begun += remaining;
        }
        for order in under_way {
            self.tally.in_doubt += 1;
            if self.counts(order, now) {
                let kind = format!("connection lost: {reason}");
                self.tally.lose(order.kind, kind);
            }
        }
    }

    /// In an open loop a transaction has become due.
    pub fn due(&mut self, skipped: bool) {
        self.tally.due += u64::from(self.measuring);
        self.tally.skipped += u64::from(self.measuring && skipped);
    }

    /// The task is done, with so many transactions under way: what was counted.
    pub fn finish(
        &mut self,
        now: u64,
        under_way: u64,
        moved: Moved,
        say: &mut dyn FnMut(Said),
    ) -> Tally {
        self.tally.in_doubt += under_way;
        // Otherwise it was stopped before anything was measured.
        if self.measuring {
            self.tally.spent = spent(moved).since(&self.before);
            self.tally.end_ns = now.min(self.task.end_ns());
            if let Some(interval_ns) = self.task.interval_ns {
                self.tell_interval(interval_ns, say);
            }
        }
        let new = Tally::new(self.tally.kinds.len(), self.tally.sessions.len());
        std::mem::replace(&mut self.tally, new)
    }

    fn counts(&self, order: Order, now: u64) -> bool {
        self.measuring && order.due_ns >= self.first_ns && now <= self.task.end_ns()
    }

    fn tell_interval(&mut self, interval_ns: u64, say: &mut dyn FnMut(Said)) {
        let begin_ns = self.interval_end_ns - interval_ns;
        let number = (begin_ns - self.task.measure_ns()) / interval_ns;
        say(Said::Interval(self.tally.take_interval(number)));
    }
}

/// CPU time of this thread so far, with the bytes.
fn spent(moved: Moved) -> Spent {
    let (user_ns, system_ns) = thread_usage_ns();
    Spent {
        user_ns,
        system_ns,
        bytes_sent: moved.bytes_sent,
        bytes_received: moved.bytes_received,
        waits: moved.waits,
    }
}
