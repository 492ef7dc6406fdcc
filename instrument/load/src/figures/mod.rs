//! Counts, and the figures of a run that follow from them: computed here, shown by the modules of
//! this folder.

pub mod client;
pub mod distribution;
pub mod hdr_log;
pub mod intervals;
pub mod json;
pub mod machine;
pub mod progress;
pub mod report;
pub mod request_log;
pub mod steady;
pub mod text;
pub mod unanswered;

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::Serialize;

use self::client::{busy_client_of_share, for_a_cpu, is_busy};
use self::distribution::{Distribution, Percentile};
use self::steady::{Ending, Steadiness};
use self::unanswered::Unanswered;
use crate::counts::greatest::Greatest;
use crate::counts::tally::{KindTally, SentTimes, Tally, by_kind};
use crate::counts::timeline::Timeline;
use crate::error::Error;
use crate::plan::{End, Goal, Pace, Plan};
use crate::units::{count, percent, time};
use crate::workload::Workload;

/// Of more late transactions than this, the 99th percentile is one of them.
const LATE_SHARE_MAX: f64 = 0.01;
/// The place of the 99th in [`PERCENTILES`].
const P99_PLACE: usize = 2;
/// Who waited for a CPU for this part of the share of the time in which requests were late made them late.
const WAITED_FOR_CPU_LEAST: f64 = 0.5;
/// By more than this factor longer from when it was due, a percentile says more of the wait than of the answers.
const WAIT_FACTOR: f64 = 2.0;
/// So much less than by Little's law, relatively, and the sessions did not run all the time.
const LITTLE_TOLERANCE: f64 = 0.05;

/// Above this share of what was due, what was not answered is warned of.
const UNANSWERED_SHARE_MAX: f64 = 0.01;

/// The figures of a run.
#[derive(Debug)]
pub struct Figures {
    /// Of the load that was measured.
    pub pace: Pace,
    /// What the rate of an open loop is a share of, if it is one.
    pub greatest: Option<Greatest>,
    pub wall_seconds: f64,
    /// The sum of all workers.
    pub all: Tally,
    /// Sessions that lost their connection.
    pub sessions_lost: u64,
    /// Latencies of each worker, if there are several.
    pub workers: Vec<KindTally>,
    /// The sum of all kinds of transactions.
    pub total: KindTally,
    /// Transactions that were due in the measured time: each was answered, was lost with its
    /// connection, is unanswered, or was skipped.
    pub due: u64,
    pub unanswered: u64,
    /// Closed loop: transactions that sessions which hang at the end could not begin.
    pub kept_from_beginning: u64,
    /// Latencies of all transactions, and by kind; with the ages of those that were not answered.
    pub latency: Distribution,
    pub kinds: Vec<Distribution>,
    /// Of all transactions, in the order of [`PERCENTILES`].
    pub percentiles: Vec<Percentile>,
    /// Open loop: what the transactions that were sent took from sending on.
    pub sent: Option<Sent>,
    pub steadiness: Steadiness,
    pub rate_per_second: f64,
    /// CPU time of the client per answered transaction; `None` if nothing was answered.
    pub client_cpu_ns_per_operation: Option<f64>,
    /// Share of a CPU that the busiest client thread used.
    pub busiest_thread_share: f64,
    /// Share of the time in which the client threads waited for a CPU, in the mean; `None` where it is not known.
    pub run_queue_share: Option<f64>,
    /// Mean number of transactions under way: rate × mean latency (Little 1961).
    pub concurrency: f64,
    /// Jain's index of the transactions of each session: 1 if all did the same number
    /// (Jain, Chiu, Hawe 1984); `None` if nothing was answered.
    pub fairness: Option<f64>,
    /// Why the figures may be those of the other programs on this machine: who reads them is to know it first.
    pub doubts: Vec<String>,
    pub warnings: Vec<String>,
}

/// Open loop: times of the transactions that were sent. Latencies count from when a transaction was
/// due; these leave out its wait for a free session, and for the client.
#[derive(Debug)]
pub struct Sent {
    /// From sending to the answer, with the ages since sending of those that were not answered.
    pub service: Distribution,
    /// In the order of [`PERCENTILES`].
    pub percentiles: Vec<Percentile>,
    /// From when a transaction was due to when it was sent.
    pub lag_ns: Histogram<u64>,
}

impl Sent {
    fn of(times: SentTimes) -> Self {
        let service = Distribution::new(times.service_ns, Some(times.unanswered_ns));
        Self {
            percentiles: percentiles(&service, None),
            service,
            lag_ns: times.lag_ns,
        }
    }
}

/// What makes most of the 99th percentile of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum P99 {
    /// A client thread was busy: it sends late, and reads late.
    Client,
    /// The wait until it was sent, as the client threads waited for a CPU.
    Cpu,
    /// The wait until it was sent, for another reason: no session was free.
    Wait,
    /// The time from sending to the answer.
    Answer,
}

impl P99 {
    fn of(is_client_busy: bool, is_mostly_wait: bool, waited_for_cpu: bool) -> Self {
        match (is_client_busy, is_mostly_wait, waited_for_cpu) {
            (true, ..) => Self::Client,
            (false, true, true) => Self::Cpu,
            (false, true, false) => Self::Wait,
            (false, false, _) => Self::Answer,
        }
    }
}

/// Whether a time from when a request was due is mostly the wait until it was sent.
fn is_wait(due_ns: u64, sending_ns: u64) -> bool {
    due_ns as f64 > WAIT_FACTOR * sending_ns as f64
}

/// Percentiles of the lag behind the schedule that are shown.
pub const LAG_PERCENTILES: [(&str, f64); 2] = [("p50", 0.5), ("p99", 0.99)];

/// Percentiles that are shown, with their names and the share of the latencies below them.
pub const PERCENTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p999", 0.999),
    ("p9999", 0.9999),
];

impl Figures {
    /// From the counts of each worker.
    ///
    /// `machine_busy` says who had the CPUs, if they were busy.
    pub fn of(
        plan: &Plan,
        pace: Pace,
        greatest: Option<Greatest>,
        mut tallies: Vec<Tally>,
        machine_busy: Option<String>,
    ) -> Self {
        let kinds = plan.workload.kinds();
        unanswered::add_due_of_lost_workers(
            plan.sessions,
            kinds,
            pace,
            matches!(end_of(&plan.goal), Some(End::Transactions { .. })),
            &mut tallies,
        );
        let busiest_thread_share = busiest_share(&tallies);
        let run_queue_share = run_queue_share(&tallies);
        let all_ran_ns = all_ran_until(&tallies);
        let workers = match tallies.len() {
            ..=1 => Vec::new(),
            _ => tallies.iter().map(Tally::total).collect(),
        };
        let mut all = Tally::merged(tallies);
        let total = all.total();
        let answered = total.answered();
        let Unanswered {
            unanswered,
            kept_from_beginning,
            latency,
            kinds,
        } = unanswered::distributions(pace, &mut all, &total);
        let percentiles = percentiles(&latency, Some(&all.timeline));
        let last_ns = all.sessions.iter().map(|it| it.last_ns).max();
        let ending = Ending {
            end_ns: all.wall_ns(),
            all_ran_ns: all_ran_ns.saturating_sub(all.begin_ns),
            last_answer_ns: last_ns.unwrap_or(0),
            longest_ns: total.latency_ns.max(),
            has_unanswered: !latency.unanswered().is_empty(),
        };
        let steadiness = steady::judge(&all.timeline, ending, pace.due_per_second());
        let wall_seconds = all.wall_ns() as f64 / 1e9;
        let rate_per_second = match all.wall_ns() {
            0 => 0.0,
            _ => answered as f64 / wall_seconds,
        };
        let latency_ns_sum: u64 = all.sessions.iter().map(|it| it.latency_ns_sum).sum();
        let cpu_ns = all.usage.cpu_ns() as f64;
        let sent = all.sent.take().map(|it| Sent::of(*it));
        let mut figures = Self {
            pace,
            greatest,
            sent,
            wall_seconds,
            rate_per_second,
            client_cpu_ns_per_operation: (answered > 0).then(|| cpu_ns / answered as f64),
            busiest_thread_share,
            run_queue_share,
            concurrency: latency_ns_sum as f64 / all.wall_ns().max(1) as f64,
            fairness: fairness(&all),
            sessions_lost: all.lost.values().sum(),
            due: answered + all.transactions_lost + unanswered + all.skipped,
            unanswered,
            kept_from_beginning,
            latency,
            kinds,
            percentiles,
            steadiness,
            all,
            workers,
            total,
            doubts: Vec::new(),
            warnings: Vec::new(),
        };
        figures.warnings = figures.find_warnings(plan, machine_busy.is_some());
        let base = figures.greatest.as_ref().and_then(Greatest::doubt);
        figures.doubts = base.into_iter().chain(machine_busy).collect();
        figures
    }

    /// All that its reader is to know, the doubts first.
    pub fn said(&self) -> Vec<&str> {
        let all = self.doubts.iter().chain(&self.warnings);
        all.map(String::as_str).collect()
    }

    /// Compares with Little's law, in a closed loop: there the number of transactions under way or
    /// in pauses is known.
    fn idle_sessions(&self, plan: &Plan) -> Option<String> {
        let Pace::Closed { think_ns } = self.pace else {
            return None;
        };
        if self.sessions_lost > 0 {
            return None;
        }
        let asked = least_under_way(plan.sessions, plan.pipeline);
        let pausing = self.rate_per_second * think_ns as f64 / 1e9;
        // Those without an answer are not in the mean latency, but were under way as well.
        let wall_ns = self.all.wall_ns();
        let waited = self.all.in_flight.iter().map(|it| it.age_ns.min(wall_ns));
        let waiting = waited.sum::<u64>() as f64 / wall_ns.max(1) as f64;
        let found = self.concurrency + waiting + pausing;
        let enough = self.total.answered() as f64 > 100.0 * asked;
        let idle = found < asked * (1.0 - LITTLE_TOLERANCE);
        (idle && enough).then(|| {
            format!(
                "by Little's law {found:.1} transactions were under way or in pauses on the average, but at least {asked} should have been: the sessions did not run all the time"
            )
        })
    }

    /// Open loop: the rate that was asked for, per second, and the share of it that was answered.
    pub fn rate_asked(&self) -> Option<(f64, f64)> {
        let asked = self.pace.due_per_second()?;
        Some((asked, self.rate_per_second / asked))
    }

    /// Transactions that were due and not answered: lost, unanswered or skipped.
    fn missing(&self) -> u64 {
        self.all.transactions_lost + self.unanswered + self.all.skipped
    }

    /// Share of what was due that was not answered. What sessions that hang could not begin counts as due:
    /// else the share of a server that hangs would be the smaller, the longer it does.
    pub fn unanswered_share(&self) -> f64 {
        let kept = self.kept_from_beginning;
        (self.missing() + kept) as f64 / (self.due + kept).max(1) as f64
    }

    /// An error if more than this share was not answered.
    pub fn fail_if_unanswered(&self, share_max: Option<f64>) -> Result<(), Error> {
        match share_max {
            Some(limit) if self.unanswered_share() > limit => Err(Error::Unanswered {
                share: percent(self.unanswered_share()),
                limit: percent(limit),
            }),
            _ => Ok(()),
        }
    }

    /// An error if each transaction of the measured phase ended with one.
    pub fn fail_if_only_errors(&self) -> Result<(), Error> {
        match (self.total.ok + self.total.refused, self.total.failed()) {
            (0, failed @ 1..) => Err(Error::OnlyErrors {
                answers: count(failed as f64),
                errors: by_kind(&self.total.errors),
            }),
            _ => Ok(()),
        }
    }

    /// Answers that held nothing, where they are most of those to a kind of transaction: a server does other
    /// work for what is there.
    fn empty_answers(&self, workload: &dyn Workload) -> Option<String> {
        let kinds = workload.kinds();
        let is_empty = |it: &KindTally| 2 * it.empty > it.answered();
        let found = kinds
            .iter()
            .zip(&self.all.kinds)
            .filter(|it| is_empty(it.1));
        let found: Vec<_> = found.collect();
        let empty: u64 = found.iter().map(|it| it.1.empty).sum();
        let answers: u64 = found.iter().map(|it| it.1.answered()).sum();
        let share = match empty == answers {
            true => "all".to_owned(),
            false => format!("{} of", percent(empty as f64 / answers as f64)),
        };
        let of = match kinds.len() {
            1 => String::new(),
            _ => {
                let names: Vec<&str> = found.iter().map(|it| it.0.name.as_str()).collect();
                format!(" to {}", names.join(" and "))
            }
        };
        let numbers = self.all.kinds.iter().enumerate();
        let mut named = numbers.filter_map(|(kind, tally)| workload.key(kind, tally.empty_key?));
        let example = named
            .next()
            .map_or_else(String::new, |it| format!(" (no key {it})"));
        (empty > 0).then(|| {
            format!(
                "{share} {} answers{of} were empty: the keys or rows asked for are not there, or hold nothing{example}; make them first (--prefill sets keys), or ask for some that exist with a --command of your own",
                count(answers as f64)
            )
        })
    }

    fn not_answered(&self) -> Option<String> {
        let number = |it: u64| count(it as f64);
        let missing = self.missing();
        let oldest_ns = self.latency.unanswered().max();
        if let Pace::Closed { .. } = self.pace {
            let hanging = self.unanswered;
            let longest = time(self.total.latency_ns.max() as f64);
            return (hanging > 0).then(|| {
                format!(
                    "{} transactions were under way for up to {} at the end, longer than any answer took ({longest}): the percentiles have them, and those that their sessions could not begin, with at least their ages; look at the server",
                    number(hanging),
                    time(oldest_ns as f64)
                )
            });
        }
        if self.unanswered_share() < UNANSWERED_SHARE_MAX {
            return None;
        }
        let lost = match self.all.transactions_lost {
            0 => String::new(),
            lost => format!("{} lost with their connections, ", number(lost)),
        };
        let what = format!(
            "{} of {} due transactions were not answered ({}; {lost}{} skipped): their latencies are at least their ages at the end, up to {}",
            number(missing),
            number(self.due),
            percent(self.unanswered_share()),
            number(self.all.skipped),
            time(oldest_ns as f64)
        );
        let is_usual = self.all.skipped == 0 && oldest_ns <= self.total.latency_ns.max();
        Some(match is_usual {
            true => format!(
                "{what}; the longest answer took longer than the oldest of them, so a longer --duration makes their share smaller"
            ),
            false => format!("{what}; a lower --rate, more --sessions, or look at the server"),
        })
    }

    /// Open loop: the share of the transactions sent that were sent late; 0 if none was sent.
    pub fn late_share(&self) -> f64 {
        let sent = self.sent.as_ref().map_or(0, |it| it.lag_ns.len());
        self.all.late as f64 / sent.max(1) as f64
    }

    /// Open loop: what makes most of the 99th percentile; `None` if nothing was sent.
    pub fn of_p99(&self, plan: &Plan) -> Option<P99> {
        let sent = self.sent.as_ref().filter(|it| !it.service.is_empty())?;
        let is_busy = is_busy(plan, self.busiest_thread_share);
        let is_wait = self.is_mostly_wait(sent);
        Some(P99::of(
            is_busy,
            is_wait,
            self.waited_for_cpu() == Some(true),
        ))
    }

    /// Open loop: were requests late since the client threads waited for a CPU? A thread that waits for one
    /// sends nothing that becomes due meanwhile, so about as large a share is late. `None` where it is not known.
    fn waited_for_cpu(&self) -> Option<bool> {
        let late = self.late_share().max(LATE_SHARE_MAX);
        self.run_queue_share
            .map(|share| share >= WAITED_FOR_CPU_LEAST * late)
    }

    fn is_mostly_wait(&self, sent: &Sent) -> bool {
        is_wait(
            self.percentiles[P99_PLACE].ns,
            sent.percentiles[P99_PLACE].ns,
        )
    }

    /// Many were sent late, and their wait makes most of the 99th percentile.
    fn sent_late(&self, plan: &Plan) -> Option<String> {
        let sent = self.sent.as_ref()?;
        if self.late_share() <= LATE_SHARE_MAX || !self.is_mostly_wait(sent) {
            return None;
        }
        let (due, sending) = (self.percentiles[P99_PLACE], sent.percentiles[P99_PLACE]);
        let shown = |it: Percentile| text::bounded(it.ns as f64, it.is_censored);
        // Of a busy client the warning before this one says what to do.
        let is_busy = is_busy(plan, self.busiest_thread_share);
        let why = match self.waited_for_cpu() {
            _ if is_busy => {
                "the client was too slow for them, as said above; or take a lower --rate".to_owned()
            }
            Some(true) => format!("the load waited for a CPU: {}", for_a_cpu(plan)),
            Some(false) => "no session was free: more --sessions, or a lower --rate".to_owned(),
            None => "no session was free, or the load waited for a CPU: more --sessions, or a lower --rate".to_owned(),
        };
        Some(format!(
            "{} of the requests were sent over 1 ms late: p99 is {} from when due and {} from sending; {why}",
            percent(self.late_share()),
            shown(due),
            shown(sending)
        ))
    }

    fn find_warnings(&self, plan: &Plan, machine_busy: bool) -> Vec<String> {
        let mut found = Vec::from_iter(self.greatest.as_ref().and_then(Greatest::excess));
        found.extend(lost_sessions(plan.sessions, &self.all.lost));
        if self.all.not_begun > 0 {
            let why = match (self.sessions_lost, is_limited(&plan.goal)) {
                (0, _) => "the --duration was over",
                (_, false) => "they were those of lost sessions",
                (_, true) => "they were those of lost sessions, or the --duration was over",
            };
            found.push(format!(
                "{} of the transactions asked for were not begun: {why}",
                self.all.not_begun
            ));
        }
        found.extend(self.not_answered());
        let before = self.greatest.as_ref();
        found.extend(busy_client_of_share(
            plan,
            before.map_or(0.0, |it| it.busiest_thread_share),
            self.busiest_thread_share,
        ));
        found.extend(self.sent_late(plan));
        if self.total.answered() == 0 {
            found.push("no transaction was answered in the measured phase: a longer --duration, or look at the server".to_owned());
            return found;
        }
        found.extend(self.steadiness.warning(self.all.wall_ns(), machine_busy));
        found.extend(plan.workload.warnings(plan.sessions));
        found.extend(self.empty_answers(plan.workload.as_ref()));
        found.extend(self.idle_sessions(plan));
        if self.total.failed() > 0 {
            found.push(format!("errors: {}", by_kind(&self.total.errors)));
        }
        found
    }
}

/// How a load ends; a search has no such end.
fn end_of(goal: &Goal) -> Option<End> {
    match goal {
        Goal::Load(load) => Some(load.end),
        Goal::Search(_) => None,
    }
}

/// Whether a number of transactions was to be done within a time.
fn is_limited(goal: &Goal) -> bool {
    let end = end_of(goal);
    matches!(end, Some(End::Transactions { within_ns, .. }) if within_ns.is_some())
}

/// Transactions that are under way on average in a closed loop whose sessions always have some, at least. A
/// session with a pipeline sends so many and waits for all of them: if they are answered one after the
/// other, it has from all of them to one under way.
fn least_under_way(sessions: u64, pipeline: u32) -> f64 {
    sessions as f64 * (f64::from(pipeline) + 1.0) / 2.0
}

/// Each percentile of a distribution, in the order of [`PERCENTILES`].
pub fn percentiles(of: &Distribution, timeline: Option<&Timeline>) -> Vec<Percentile> {
    let percentile = |it: &(&str, f64)| of.percentile(it.1, timeline);
    PERCENTILES.iter().map(percentile).collect()
}

/// A warning if sessions lost their connection.
pub fn lost_sessions(sessions: u64, lost: &BTreeMap<String, u64>) -> Option<String> {
    let count: u64 = lost.values().sum();
    (count > 0).then(|| {
        format!(
            "{count} of {sessions} sessions lost their connection and did no more ({})",
            by_kind(lost)
        )
    })
}

/// An error if no session is left. Without an answer there are no figures until then.
pub fn fail_if_all_lost(
    plan: &Plan,
    sessions: u64,
    lost: &BTreeMap<String, u64>,
    answered: bool,
) -> Result<(), Error> {
    if lost.values().sum::<u64>() < sessions {
        return Ok(());
    }
    Err(Error::AllLost {
        sessions,
        server: plan.target_name(),
        why: by_kind(lost),
        figures: match answered {
            true => "these are the figures until then",
            false => "not one answer came",
        },
    })
}

/// Share of a CPU that the busiest worker used.
pub fn busiest_share(tallies: &[Tally]) -> f64 {
    let measured = tallies.iter().filter(|it| it.wall_ns() > 0);
    let shares = measured.map(|it| it.usage.cpu_ns() as f64 / it.wall_ns() as f64);
    shares.fold(0.0, f64::max)
}

/// Share of the time in which the workers waited for a CPU, in the mean.
fn run_queue_share(tallies: &[Tally]) -> Option<f64> {
    let measured = || tallies.iter().filter(|it| it.wall_ns() > 0);
    let waited: Option<u64> = measured().map(|it| it.usage.run_queue_ns).sum();
    let wall: u64 = measured().map(Tally::wall_ns).sum();
    waited
        .filter(|_| wall > 0)
        .map(|it| it as f64 / wall as f64)
}

/// Until when all workers ran, but for those that lost all their sessions; on the monotonic clock.
fn all_ran_until(tallies: &[Tally]) -> u64 {
    let lost = |it: &Tally| it.lost.values().sum::<u64>() >= it.sessions.len() as u64;
    let ended = |it: &Tally| it.end_ns;
    let ran = tallies.iter().filter(|it| it.end_ns > 0 && !lost(it));
    let least = ran.map(ended).min();
    least.or(tallies.iter().map(ended).max()).unwrap_or(0)
}

fn fairness(all: &Tally) -> Option<f64> {
    let counts = || all.sessions.iter().map(|it| it.transactions as f64);
    let (sum, squares) = (
        counts().sum::<f64>(),
        counts().map(|it| it * it).sum::<f64>(),
    );
    (squares > 0.0).then(|| sum * sum / (counts().count() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command_line::Arguments;
    use crate::plan::Spread;
    use crate::workload::Ending;

    #[test]
    fn who_makes_most_of_a_p99_follows_from_the_client_and_from_the_wait() {
        assert_eq!(P99::of(true, is_wait(900, 100), true), P99::Client);
        assert_eq!(P99::of(true, is_wait(100, 100), false), P99::Client);
        assert_eq!(P99::of(false, is_wait(201, 100), true), P99::Cpu);
        assert_eq!(P99::of(false, is_wait(201, 100), false), P99::Wait);
        assert_eq!(P99::of(false, is_wait(200, 100), true), P99::Answer);
    }

    #[test]
    fn the_time_for_which_threads_waited_for_a_cpu_is_a_share_of_theirs() {
        let ran = |wall_ns: u64, run_queue_ns| {
            let mut tally = Tally::new(1, 1);
            (tally.begin_ns, tally.end_ns) = (1, 1 + wall_ns);
            tally.usage.run_queue_ns = run_queue_ns;
            tally
        };
        assert_eq!(
            run_queue_share(&[ran(100, Some(5)), ran(100, Some(15))]),
            Some(0.1)
        );
        assert_eq!(
            run_queue_share(&[ran(100, Some(5)), ran(0, None)]),
            Some(0.05)
        );
        assert_eq!(run_queue_share(&[ran(100, Some(5)), ran(100, None)]), None);
        assert_eq!(run_queue_share(&[]), None);
    }

    /// The plan and the figures of an open loop of which 5 of 100 requests were sent 14 ms late, where the
    /// thread waited for a CPU for this share of the time.
    fn late(run_queue_share: Option<f64>) -> (Plan, Figures) {
        let called = ["concurve-load", "redis://127.0.0.1:1", "--sessions", "8"];
        let plan = Arguments::parse_from(called).plan().unwrap();
        let pace = Pace::Open {
            rate_per_second: 100.0,
            spread: Spread::Constant,
            backlog_max: 10,
        };
        let mut tally = Tally::new(plan.workload.kinds().len(), 8);
        (tally.begin_ns, tally.end_ns) = (1, 1_000_000_001);
        for number in 0..100 {
            let lag_ns = if number < 5 { 14_000_000 } else { 50_000 };
            tally.end(0, 0, lag_ns + 400_000, Ending::Ok);
            let sent = tally.sent();
            sent.lag_ns.record(lag_ns).unwrap();
            sent.service_ns.record(400_000).unwrap();
        }
        (tally.due, tally.late) = (100, 5);
        tally.usage.run_queue_ns = run_queue_share.map(|it| (it * 1e9) as u64);
        let figures = Figures::of(&plan, pace, None, vec![tally], None);
        (plan, figures)
    }

    #[test]
    fn the_first_line_says_which_p99_to_report() {
        for (share, report) in [
            (
                Some(0.04),
                "report 400 µs from sending; 14.4 ms from due is the load's lateness",
            ),
            (
                Some(0.02),
                "report 14.4 ms from due, mostly the wait until sent",
            ),
            (None, "report 14.4 ms from due, mostly the wait until sent"),
        ] {
            let (plan, figures) = late(share);
            let said = text::table(&plan, &figures);
            let mut lines = said.lines().skip_while(|it| !it.starts_with("answered "));
            let line = lines.nth(1).unwrap();
            assert_eq!(line, format!("p99          {report}"), "{said}");
        }
    }

    #[test]
    fn no_p99_of_a_run_in_doubt_is_to_be_reported() {
        let (plan, mut figures) = late(Some(0.02));
        assert_eq!(json::p99(&plan, &figures)["in_doubt"], false);
        figures.doubts.push("the CPUs were busy".to_owned());
        let said = text::table(&plan, &figures);
        let row = "p99          in doubt, report none: 14.4 ms from due, 400 µs from sending";
        assert!(
            said.contains(row) && !said.contains("p99          report"),
            "{said}"
        );
        let told = json::p99(&plan, &figures);
        assert_eq!(told["in_doubt"], true);
        assert_eq!(told["mostly"], "wait");
        assert!(row.ends_with(told["text"].as_str().unwrap()), "{told}");
    }

    #[test]
    fn what_is_advised_to_a_load_that_sent_late_is_what_made_it_late() {
        for (share, why) in [
            (Some(0.04), "the load waited for a CPU: "),
            (
                Some(0.02),
                "no session was free: more --sessions, or a lower --rate",
            ),
            (
                None,
                "no session was free, or the load waited for a CPU: more --sessions, or a lower --rate",
            ),
        ] {
            let (plan, figures) = late(share);
            let said = figures.sent_late(&plan).unwrap();
            assert!(said.contains(&format!(" from sending; {why}")), "{said}");
            assert!(said.split_whitespace().count() <= 45, "{said}");
        }
    }

    #[test]
    fn a_pipeline_that_is_answered_one_by_one_is_half_full_on_average() {
        assert_eq!(least_under_way(8, 1), 8.0);
        // Ten are sent together: the first takes 1, the last 10, and then the next ten are sent.
        let latencies: u32 = (1..=10).sum();
        let mean = f64::from(latencies) / 10.0;
        assert_eq!(least_under_way(3, 10), 3.0 * mean);
    }
}
