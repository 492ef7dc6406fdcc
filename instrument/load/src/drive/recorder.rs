//! The counts of a client thread during a task, and when it reports them.

use concurve_probe::schedstat;
use hdrhistogram::Histogram;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rand::rngs::SmallRng;
use serde::{Deserialize, Serialize};

use super::open_loop::{Due, OpenLoop};
use super::session::ScheduledTransaction;
use crate::counts::histogram::histogram;
use crate::counts::requests::{Outcome, RequestTimes};
use crate::counts::tally::{CONNECTION_LOST, InFlight, Interval, ResourceUsage, Tally, add_count};
use crate::counts::timeline::Timeline;
use crate::error::Error;
use crate::plan::{End, Pace, Plan, Task};
use crate::workload::{Ending, TransactionKind, draw_kind};

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
    /// What was due and skipped when the last interval was reported.
    reported: (u64, u64),
    /// Those that count and will have no answer that counts: lost, or answered after the end.
    unanswered: Vec<Outstanding>,
    /// By kind, when skipped transactions were due, since measuring began. Empty before the first.
    skipped_ns: Vec<Histogram<u64>>,
    /// The number of the first session.
    first_session: u64,
    /// The requests that count, if they are logged.
    requests: Option<Vec<RequestTimes>>,
}

/// A transaction that was due, and has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outstanding {
    pub kind: usize,
    pub due_ns: u64,
    /// If it was begun: the index of its session, and when.
    pub begun: Option<(usize, u64)>,
    pub outcome: Outcome,
}

impl Outstanding {
    /// A transaction that a session has under way.
    pub fn under_way(session: usize, transaction: ScheduledTransaction) -> Self {
        Self {
            kind: transaction.kind,
            due_ns: transaction.due_ns,
            begun: Some((session, transaction.begun_ns)),
            outcome: Outcome::Unanswered,
        }
    }

    /// A transaction that waits for a session.
    pub fn waiting(kind: usize, due_ns: u64) -> Self {
        Self {
            kind,
            due_ns,
            begun: None,
            outcome: Outcome::Waiting,
        }
    }
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
    /// Before the first task: how long it took to connect each session. `first_session` is the
    /// number of the first.
    pub fn new(plan: &Plan, first_session: u64, connected_ns: &[u64]) -> Self {
        let kinds = plan.workload.kinds().len();
        Self::of_kinds(kinds, first_session, connected_ns, plan.logs_requests)
    }

    /// The same for so many kinds of transactions.
    pub fn of_kinds(
        kinds: usize,
        first_session: u64,
        connected_ns: &[u64],
        logs_requests: bool,
    ) -> Self {
        let mut tally = Tally::new(kinds, connected_ns.len());
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
            reported: (0, 0),
            unanswered: Vec::new(),
            skipped_ns: Vec::new(),
            first_session,
            requests: logs_requests.then(Vec::new),
        }
    }

    pub fn begin(&mut self, task: Task) {
        self.task = task;
        self.measuring = false;
        self.interval_end_ns = u64::MAX;
        self.reported = (0, 0);
        self.unanswered.clear();
        self.skipped_ns.clear();
        self.tally.timeline = Timeline::new(match task.end {
            End::Transactions { .. } => None,
            End::After { ns } => Some(ns),
        });
        // An open loop counts what was due in the measured time, and a task that ends by a number
        // what was begun in it. A closed loop that ends by time counts all that end within it, but
        // none of the task before.
        self.first_ns = match task.ends_by_number() || self.is_open() {
            true => task.measure_ns(),
            false => task.begin_ns,
        };
    }

    fn is_open(&self) -> bool {
        matches!(self.task.pace, Pace::Open { .. })
    }

    /// Whether a transaction that was due then belongs to the measured time.
    fn is_measured(&self, due_ns: u64) -> bool {
        due_ns >= self.first_ns && due_ns < self.task.end_ns()
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
        if self.measuring && self.is_measured(due_ns) {
            let lag_ns = now - due_ns;
            if self.is_open() {
                self.tally.sent().lag_ns.saturating_record(lag_ns.max(1));
            }
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
        if !self.measuring || !self.is_measured(transaction.due_ns) {
            return;
        }
        if now > self.task.end_ns() {
            let late = Outstanding::under_way(session, transaction);
            self.unanswered.push(late);
            return;
        }
        if self.requests.is_some() {
            self.log_answer(session, transaction, now, &ending);
        }
        let latency_ns = now - transaction.due_ns;
        let since_ns = now - self.task.measure_ns();
        if self.is_open() {
            let service_ns = now.saturating_sub(transaction.begun_ns);
            let sent = self.tally.sent();
            sent.service_ns.saturating_record(service_ns.max(1));
        }
        self.tally
            .end(transaction.kind, session, latency_ns, ending);
        self.tally.sessions[session].last_ns = since_ns;
        self.tally.timeline.record(since_ns, latency_ns);
    }

    /// A session is lost, with the transactions that were under way and the number of those that
    /// were not begun.
    pub fn lost(
        &mut self,
        session: usize,
        reason: &str,
        under_way: impl Iterator<Item = ScheduledTransaction>,
        remaining: u64,
        now: u64,
    ) {
        add_count(&mut self.tally.lost, reason.to_owned(), 1);
        if self.task.ends_by_number() {
            self.tally.not_begun += remaining;
        }
        for transaction in under_way {
            self.tally.in_doubt += 1;
            if !self.measuring || !self.is_measured(transaction.due_ns) {
                continue;
            }
            let mut left = Outstanding::under_way(session, transaction);
            // What is lost after the end was not answered at the end.
            if now <= self.task.end_ns() {
                let kind = format!("{CONNECTION_LOST}{reason}");
                self.tally.lose(transaction.kind, kind);
                left.outcome = Outcome::Lost;
            }
            self.unanswered.push(left);
        }
    }

    /// A transaction of an open loop has become due.
    pub fn due(&mut self, due: Due, kinds: &[TransactionKind], random: &mut SmallRng) {
        if !self.measuring || !self.is_measured(due.due_ns()) {
            return;
        }
        self.tally.due += 1;
        if let Due::Skipped { due_ns } = due {
            self.skip(draw_kind(kinds, random), due_ns);
        }
    }

    /// Ends the schedule of an open loop: returns what has become due and was not begun.
    pub fn end_schedule(
        &mut self,
        mut open: OpenLoop,
        now: u64,
        kinds: &[TransactionKind],
        random: &mut SmallRng,
    ) -> Vec<Outstanding> {
        let end_ns = now.min(self.task.end_ns());
        while let Some(due) = open.next_unbegun(end_ns, random) {
            self.due(due, kinds, random);
        }
        let wait = |due_ns| Outstanding::waiting(draw_kind(kinds, random), due_ns);
        open.end().into_iter().map(wait).collect()
    }

    /// A transaction that has become due is skipped.
    fn skip(&mut self, kind: usize, due_ns: u64) {
        self.tally.skipped += 1;
        if self.skipped_ns.is_empty() {
            self.skipped_ns = self.tally.kinds.iter().map(|_| histogram()).collect();
        }
        let since_ns = due_ns - self.task.measure_ns();
        self.skipped_ns[kind].saturating_record(since_ns.max(1));
        if let Some(requests) = &mut self.requests {
            requests.push(RequestTimes {
                session: None,
                kind,
                due_ns,
                sent_ns: None,
                answered_ns: None,
                outcome: Outcome::Skipped,
            });
        }
    }

    /// The task is done: returns all counts. `outstanding` has what was begun, and what waited for a session,
    /// the oldest first. `remaining` has how many others each session may still begin.
    pub fn finish(
        &mut self,
        now: u64,
        outstanding: impl Iterator<Item = Outstanding>,
        remaining: &[u64],
        traffic: Traffic,
        send: &mut dyn FnMut(WorkerMessage),
    ) -> Tally {
        let end_ns = now.min(self.task.end_ns());
        let mut unanswered = std::mem::take(&mut self.unanswered);
        let is_begun = |it: &Outstanding| it.begun.is_some();
        let (under_way, mut waiting): (Vec<_>, Vec<_>) = outstanding.partition(is_begun);
        self.tally.in_doubt += under_way.len() as u64;
        unanswered.extend(under_way);
        if self.measuring && self.task.ends_by_number() {
            let is_time_over = now >= self.task.end_ns();
            self.settle_number(&mut waiting, remaining.iter().sum(), is_time_over);
        }
        unanswered.extend(waiting);
        // Otherwise the run was stopped before anything was measured.
        if self.measuring {
            self.tally.usage = usage(traffic).since(&self.before);
            self.tally.end_ns = end_ns;
            let parts = parts_of(remaining, &unanswered);
            for outstanding in unanswered.drain(..) {
                let others_max = outstanding.begun.map_or(0, |it| parts[it.0]);
                self.leave(outstanding, others_max, end_ns);
            }
            self.leave_skipped(end_ns);
            if let Some(interval_ns) = self.task.interval_ns {
                self.report_interval(interval_ns, send);
            }
            debug_assert!(
                !self.is_open() || self.tally.due == self.accounted_for(),
                "{} due, {} accounted for",
                self.tally.due,
                self.accounted_for()
            );
        }
        // What it has allocated serves the next task.
        unanswered.clear();
        self.unanswered = unanswered;
        let new = Tally::new(self.tally.kinds.len(), self.tally.sessions.len());
        std::mem::replace(&mut self.tally, new)
    }

    /// Each transaction of a number counts once. What became due and waits is unanswered, as far as there are
    /// sessions that may still begin it; what is beyond that was to be done by sessions that are lost, and is
    /// among those not begun. What was skipped will not be begun any more, and is not among them.
    fn settle_number(
        &mut self,
        waiting: &mut Vec<Outstanding>,
        remaining: u64,
        is_time_over: bool,
    ) {
        waiting.retain(|it| self.is_measured(it.due_ns));
        let found = waiting.len() as u64;
        let skipped = self.tally.skipped;
        let kept = found.min(remaining.saturating_sub(skipped));
        waiting.truncate(kept as usize);
        self.tally.due -= found - kept;
        let of_lost = skipped.saturating_sub(remaining);
        self.tally.not_begun = self.tally.not_begun.saturating_sub(of_lost);
        if is_time_over {
            self.tally.not_begun += remaining.saturating_sub(kept + skipped);
        }
    }

    /// Counts a transaction that is not answered at the end. In a closed loop its session was to begin so many
    /// others after it.
    fn leave(&mut self, outstanding: Outstanding, others_max: u64, end_ns: u64) {
        let Outstanding { kind, due_ns, .. } = outstanding;
        if !self.is_measured(due_ns) {
            return;
        }
        let age_ns = end_ns.saturating_sub(due_ns);
        if let Some((_, sent_ns)) = outstanding.begun
            && self.is_open()
        {
            let since_ns = end_ns.saturating_sub(sent_ns).max(1);
            self.tally.sent().unanswered_ns.saturating_record(since_ns);
        }
        if outstanding.outcome == Outcome::Lost {
            self.tally.transactions_lost += 1;
            self.tally.add_age(kind, age_ns, 1);
        } else if self.is_open() {
            self.tally.unanswered += 1;
            self.tally.add_age(kind, age_ns, 1);
        } else {
            let left = InFlight {
                kind,
                age_ns,
                others_max,
            };
            self.tally.in_flight.push(left);
        }
        if let Some(requests) = &mut self.requests {
            let (session, sent_ns) = outstanding.begun.unzip();
            requests.push(RequestTimes {
                session: session.map(|it| self.first_session + it as u64),
                kind,
                due_ns,
                sent_ns,
                answered_ns: None,
                outcome: outstanding.outcome,
            });
        }
    }

    /// Turns the due times of skipped transactions into their ages.
    fn leave_skipped(&mut self, end_ns: u64) {
        let since_ns = end_ns - self.task.measure_ns();
        for (kind, dues) in std::mem::take(&mut self.skipped_ns).iter().enumerate() {
            for due in dues.iter_recorded() {
                let due_ns = dues.median_equivalent(due.value_iterated_to());
                let count = due.count_at_value();
                self.tally
                    .add_age(kind, since_ns.saturating_sub(due_ns), count);
            }
        }
    }

    /// Transactions that were answered, were lost, are unanswered, or were skipped.
    fn accounted_for(&self) -> u64 {
        let answered = self.tally.sessions.iter().map(|it| it.transactions);
        let missing = self.tally.transactions_lost + self.tally.unanswered + self.tally.skipped;
        answered.sum::<u64>() + missing
    }

    #[cold]
    fn log_answer(
        &mut self,
        session: usize,
        transaction: ScheduledTransaction,
        now: u64,
        ending: &Ending,
    ) {
        let request = RequestTimes {
            session: Some(self.first_session + session as u64),
            kind: transaction.kind,
            due_ns: transaction.due_ns,
            sent_ns: Some(transaction.begun_ns),
            answered_ns: Some(now),
            outcome: match ending {
                Ending::Ok | Ending::Empty(_) => Outcome::Ok,
                Ending::Refused => Outcome::Refused,
                Ending::Error(_) => Outcome::Error,
            },
        };
        self.requests.get_or_insert_default().push(request);
    }

    fn report_interval(&mut self, interval_ns: u64, send: &mut dyn FnMut(WorkerMessage)) {
        let begin_ns = self.interval_end_ns - interval_ns;
        let number = (begin_ns - self.task.measure_ns()) / interval_ns;
        let mut interval = self.tally.take_interval(number);
        // What waited for sessions that are lost was reported as due, and is none.
        interval.due = self.tally.due.saturating_sub(self.reported.0);
        interval.skipped = self.tally.skipped - self.reported.1;
        self.reported = (self.tally.due, self.tally.skipped);
        if let Some(requests) = &mut self.requests {
            interval.requests = std::mem::take(requests);
        }
        send(WorkerMessage::Interval(interval));
    }
}

/// Of what each session may still begin, the part of each transaction that it has under way.
fn parts_of(remaining: &[u64], unanswered: &[Outstanding]) -> Vec<u64> {
    let mut under_way = vec![0; remaining.len()];
    for (session, _) in unanswered.iter().filter_map(|it| it.begun) {
        under_way[session] += 1;
    }
    let part = |(remaining, under_way): (&u64, &u64)| remaining / (*under_way).max(1);
    remaining.iter().zip(&under_way).map(part).collect()
}

/// CPU time of this thread so far, and the traffic of its sessions.
fn usage(traffic: Traffic) -> ResourceUsage {
    let (user_ns, system_ns) = thread_usage_ns();
    ResourceUsage {
        user_ns,
        system_ns,
        run_queue_ns: run_queue_ns(),
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

/// For how long the calling thread waited for a CPU so far, in ns; `None` where the kernel does not tell.
fn run_queue_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    schedstat::parse(&text).ok().map(|it| it.run_queue_ns)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::plan::Spread;

    const END_NS: u64 = 1_000_000_000;

    /// The counts of an open loop in which one transaction was due, and was lost at a time.
    fn lost_at(now: u64) -> Tally {
        let mut recorder = Recorder::of_kinds(1, 0, &[1], false);
        recorder.begin(Task {
            pace: Pace::Open {
                rate_per_second: 1.0,
                spread: Spread::Constant,
                backlog_max: 0,
            },
            end: End::After { ns: END_NS },
            ..Task::NONE
        });
        let mut send = |_: WorkerMessage| {};
        recorder.advance(0, Traffic::default, &mut send);
        let due_ns = END_NS / 2;
        let begin = Due::Begin { session: 0, due_ns };
        recorder.due(begin, &[], &mut SmallRng::seed_from_u64(1));
        let transaction = ScheduledTransaction {
            kind: 0,
            due_ns,
            begun_ns: due_ns,
        };
        recorder.lost(0, "reset by peer", [transaction].into_iter(), 0, now);
        let none = std::iter::empty();
        recorder.finish(now, none, &[u64::MAX], Traffic::default(), &mut send)
    }

    #[test]
    fn what_is_lost_behind_the_end_is_unanswered() {
        let tally = lost_at(END_NS);
        assert_eq!((tally.transactions_lost, tally.unanswered), (1, 0));
        assert_eq!(tally.total().failed(), 1);
        let tally = lost_at(END_NS + 1);
        assert_eq!((tally.transactions_lost, tally.unanswered), (0, 1));
        assert_eq!(tally.total().failed(), 0);
        assert_eq!((tally.due, tally.in_doubt), (1, 1));
        assert_eq!(tally.ages[0].0.len(), 1);
    }

    /// A number of transactions, to be begun within a time.
    fn number_at(pace: Pace, number: u64) -> Task {
        Task {
            pace,
            end: End::Transactions {
                number,
                within_ns: Some(END_NS),
            },
            ..Task::NONE
        }
    }

    #[test]
    fn of_a_number_each_counts_once_where_a_session_is_lost() {
        let pace = Pace::Open {
            rate_per_second: 1.0,
            spread: Spread::Constant,
            backlog_max: 6,
        };
        let kinds = [TransactionKind {
            name: "get".to_owned(),
            weight: 1,
            round_trips: std::iter::once(0..1).collect(),
        }];
        for ended_ns in [END_NS, END_NS - 1] {
            let mut recorder = Recorder::of_kinds(1, 0, &[1, 1], false);
            recorder.begin(number_at(pace, 10));
            let mut send = |_: WorkerMessage| {};
            recorder.advance(0, Traffic::default, &mut send);
            let begin = |session| Due::Begin { session, due_ns: 1 };
            let waits = std::iter::repeat_n(Due::Waits { due_ns: 2 }, 6);
            let skipped = std::iter::repeat_n(Due::Skipped { due_ns: 3 }, 2);
            let mut random = SmallRng::seed_from_u64(1);
            for due in [begin(0), begin(1)].into_iter().chain(waits).chain(skipped) {
                recorder.due(due, &kinds, &mut random);
            }
            let transaction = ScheduledTransaction {
                kind: 0,
                due_ns: 1,
                begun_ns: 1,
            };
            recorder.lost(1, "reset by peer", [transaction].into_iter(), 4, 5);
            let waiting = std::iter::repeat_n(Outstanding::waiting(0, 2), 6);
            let outstanding = std::iter::once(Outstanding::under_way(0, transaction));
            let outstanding = outstanding.chain(waiting);
            // Two of the four that session 0 may begin were skipped.
            let traffic = Traffic::default();
            let tally = recorder.finish(ended_ns, outstanding, &[4, 0], traffic, &mut send);
            assert_eq!((tally.transactions_lost, tally.skipped), (1, 2));
            assert_eq!((tally.unanswered, tally.due), (1 + 2, 6));
            assert_eq!(tally.not_begun, 4);
        }
    }

    #[test]
    fn what_a_session_may_still_begin_is_divided_among_those_under_way() {
        let mut recorder = Recorder::of_kinds(1, 0, &[1, 1], false);
        recorder.begin(number_at(Pace::Closed { think_ns: 0 }, 20));
        let mut send = |_: WorkerMessage| {};
        recorder.advance(0, Traffic::default, &mut send);
        let under_way = |session| {
            let transaction = ScheduledTransaction {
                kind: 0,
                due_ns: 1,
                begun_ns: 1,
            };
            Outstanding::under_way(session, transaction)
        };
        let outstanding = [0, 0, 1].map(under_way).into_iter();
        let traffic = Traffic::default();
        let tally = recorder.finish(END_NS, outstanding, &[6, 5], traffic, &mut send);
        let others_max: Vec<u64> = tally.in_flight.iter().map(|it| it.others_max).collect();
        assert_eq!(others_max, [3, 3, 5]);
        assert_eq!(tally.not_begun, 11);
    }
}
