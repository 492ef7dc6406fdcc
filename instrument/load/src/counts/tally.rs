//! Counts: of a thread, of a kind of transaction, of a session; and their sums.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::histogram::histogram;
use super::requests::RequestTimes;
use super::timeline::Timeline;
use crate::workload::Ending;

/// Ages of transactions that were not answered, in ns.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ages(#[serde(with = "super::histogram")] pub Histogram<u64>);

/// A transaction that was under way at the end of the measured time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    pub kind: usize,
    pub age_ns: u64,
    /// How many others its session was to begin after it, at most: its part, where several are under way. More
    /// than can be begun, if the run ends by time.
    pub others_max: u64,
}

/// Counts of one session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTally {
    pub transactions: u64,
    pub latency_ns_sum: u64,
    pub latency_ns_max: u64,
    /// From the beginning of measuring to its last answer.
    pub last_ns: u64,
}

/// Open loop: times of the transactions that were sent, of all kinds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SentTimes {
    /// From sending to the answer, without the wait for a free session, in ns.
    #[serde(with = "super::histogram")]
    pub service_ns: Histogram<u64>,
    /// From sending to the end of the measured time, of those that were not answered: the time from
    /// sending to their answer is at least that.
    #[serde(with = "super::histogram")]
    pub unanswered_ns: Histogram<u64>,
    /// From when a transaction was due to when it was sent.
    #[serde(with = "super::histogram")]
    pub lag_ns: Histogram<u64>,
}

impl Default for SentTimes {
    fn default() -> Self {
        Self {
            service_ns: histogram(),
            unanswered_ns: histogram(),
            lag_ns: histogram(),
        }
    }
}

impl SentTimes {
    fn add(&mut self, other: &Self) {
        self.service_ns += &other.service_ns;
        self.unanswered_ns += &other.unanswered_ns;
        self.lag_ns += &other.lag_ns;
    }
}

/// The kind of the error of a transaction that was lost with its connection begins so.
pub const CONNECTION_LOST: &str = "connection lost: ";

/// All counts of one worker, or their sum.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tally {
    /// By kind of transaction.
    pub kinds: Vec<KindTally>,
    /// By session, in the order of their numbers.
    pub sessions: Vec<SessionTally>,
    pub usage: ResourceUsage,
    /// Open loop: transactions that were due in the measured time. Each was answered, was lost, is
    /// unanswered, or was skipped.
    pub due: u64,
    /// Open loop: transactions that were due in the measured time, and neither answered by its end
    /// nor lost or skipped: under way, or waiting for a session. Those under way in a closed loop are
    /// `in_flight`.
    pub unanswered: u64,
    /// Transactions that were due in the measured time, and lost with their connection: they are
    /// among the errors.
    pub transactions_lost: u64,
    /// By kind of transaction, the ages at the end of those that are lost, unanswered or skipped:
    /// their latencies are at least these. Empty if there are none.
    pub ages: Vec<Ages>,
    /// Closed loop: what was under way at the end.
    pub in_flight: Vec<InFlight>,
    pub timeline: Timeline,
    /// Open loop: transactions that began more than the tolerance after they were due.
    pub late: u64,
    /// Open loop: transactions that were due but not begun, because too many were waiting.
    pub skipped: u64,
    /// Longest time from when a transaction was due to its beginning.
    pub lag_ns_max: u64,
    /// Open loop; `None` before the first is sent.
    pub sent: Option<Box<SentTimes>>,
    /// Transactions that succeeded, also before and after the measured phase: the server must have
    /// committed them.
    pub acknowledged: u64,
    /// Transactions that were begun but not answered: the server may have committed them.
    pub in_doubt: u64,
    /// Sessions that lost their connection, by reason.
    pub lost: BTreeMap<String, u64>,
    /// If the run ends by a number: transactions that were not begun, because their sessions were lost or the
    /// time was over. What had become due is not among them, but for what lost sessions were to do.
    pub not_begun: u64,
    #[serde(with = "super::histogram")]
    pub connection_ns: Histogram<u64>,
    pub begin_ns: u64,
    pub end_ns: u64,
}

impl Tally {
    pub fn new(kinds: usize, sessions: usize) -> Self {
        Self {
            kinds: vec![KindTally::default(); kinds],
            sessions: vec![SessionTally::default(); sessions],
            usage: ResourceUsage::default(),
            due: 0,
            unanswered: 0,
            transactions_lost: 0,
            ages: Vec::new(),
            in_flight: Vec::new(),
            timeline: Timeline::new(None),
            late: 0,
            skipped: 0,
            lag_ns_max: 0,
            sent: None,
            acknowledged: 0,
            in_doubt: 0,
            lost: BTreeMap::new(),
            not_begun: 0,
            connection_ns: histogram(),
            begin_ns: u64::MAX,
            end_ns: 0,
        }
    }

    /// Counts a success, whether it is measured or not.
    pub fn note_end(&mut self, ending: &Ending) {
        self.acknowledged += u64::from(matches!(ending, Ending::Ok | Ending::Empty(_)));
    }

    /// Takes the counts by kind as those of an interval, and begins new ones.
    pub fn take_interval(&mut self, number: u64) -> Interval {
        let new = vec![KindTally::default(); self.kinds.len()];
        let kinds = std::mem::replace(&mut self.kinds, new);
        Interval {
            number,
            kinds,
            due: 0,
            skipped: 0,
            requests: Vec::new(),
        }
    }

    /// Adds counts that were reported as an interval.
    pub fn add_interval(&mut self, interval: &Interval) {
        add_kinds(&mut self.kinds, &interval.kinds);
    }

    /// Counts a measured transaction.
    pub fn end(&mut self, kind: usize, session: usize, latency_ns: u64, ending: Ending) {
        let tally = &mut self.kinds[kind];
        tally.latency_ns.saturating_record(latency_ns.max(1));
        match ending {
            Ending::Ok => tally.ok += 1,
            Ending::Empty(key) => {
                tally.ok += 1;
                tally.empty += 1;
                tally.empty_key.get_or_insert(key);
            }
            Ending::Refused => tally.refused += 1,
            Ending::Error(name) => add_count(&mut tally.errors, name, 1),
        }
        let session = &mut self.sessions[session];
        session.transactions += 1;
        session.latency_ns_sum += latency_ns;
        session.latency_ns_max = session.latency_ns_max.max(latency_ns);
    }

    /// Open loop: the times of what was sent.
    pub fn sent(&mut self) -> &mut SentTimes {
        self.sent.get_or_insert_default()
    }

    /// Adds a transaction of a kind that was not answered, and so old at the end.
    pub fn add_age(&mut self, kind: usize, age_ns: u64, count: u64) {
        if self.ages.is_empty() {
            self.ages = self.kinds.iter().map(|_| Ages(histogram())).collect();
        }
        self.ages[kind].0.saturating_record_n(age_ns.max(1), count);
    }

    /// Counts a measured transaction that was lost with its connection.
    pub fn lose(&mut self, kind: usize, error: String) {
        add_count(&mut self.kinds[kind].errors, error, 1);
    }

    /// The sum of all workers; their sessions one after the other.
    pub fn merged(tallies: Vec<Self>) -> Self {
        let kinds = tallies.first().map_or(0, |tally| tally.kinds.len());
        let mut all = Self::new(kinds, 0);
        for (number, tally) in tallies.into_iter().enumerate() {
            match number {
                0 => all.timeline = tally.timeline,
                _ => all.timeline.add(&tally.timeline),
            }
            match all.ages.is_empty() {
                true => all.ages = tally.ages,
                false => {
                    let pairs = all.ages.iter_mut().zip(&tally.ages);
                    pairs.for_each(|(own, other)| own.0 += &other.0);
                }
            }
            all.in_flight.extend(tally.in_flight);
            all.unanswered += tally.unanswered;
            all.transactions_lost += tally.transactions_lost;
            add_kinds(&mut all.kinds, &tally.kinds);
            all.sessions.extend(tally.sessions);
            all.usage.add(&tally.usage);
            all.due += tally.due;
            all.late += tally.late;
            all.skipped += tally.skipped;
            all.lag_ns_max = all.lag_ns_max.max(tally.lag_ns_max);
            match (&mut all.sent, tally.sent) {
                (Some(own), Some(other)) => own.add(&other),
                (own @ None, other) => *own = other,
                (Some(_), None) => {}
            }
            all.acknowledged += tally.acknowledged;
            all.in_doubt += tally.in_doubt;
            add_counts(&mut all.lost, &tally.lost);
            all.not_begun += tally.not_begun;
            all.connection_ns += &tally.connection_ns;
            all.begin_ns = all.begin_ns.min(tally.begin_ns);
            all.end_ns = all.end_ns.max(tally.end_ns);
        }
        all
    }

    /// The sum of all kinds.
    pub fn total(&self) -> KindTally {
        let mut total = KindTally::default();
        for kind in &self.kinds {
            total.add(kind);
        }
        total
    }

    /// When measuring began and ended, on CLOCK_MONOTONIC; `None` if the run ended before.
    pub fn measured_ns(&self) -> Option<(u64, u64)> {
        (self.end_ns > 0).then_some((self.begin_ns, self.end_ns))
    }

    /// From the first worker's beginning to the last one's end.
    pub fn wall_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}

/// Counts of one kind of transaction.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KindTally {
    /// Latencies in ns, from when a transaction was due; of answered transactions, also refused
    /// ones.
    #[serde(with = "super::histogram")]
    pub latency_ns: Histogram<u64>,
    pub ok: u64,
    /// Of these, those whose answer held nothing: no such key, no row, an empty value.
    pub empty: u64,
    /// The number of the first key to which the answer held nothing.
    #[serde(default)]
    pub empty_key: Option<i64>,
    pub refused: u64,
    /// By kind of error: answered with an error, or not answered because the connection was lost.
    pub errors: BTreeMap<String, u64>,
}

/// The counts of one interval of the measured time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Interval {
    /// Its number, from 0 when measuring began.
    pub number: u64,
    pub kinds: Vec<KindTally>,
    /// Open loop: transactions that became due in it, and those of them that were skipped.
    pub due: u64,
    pub skipped: u64,
    /// If they are logged, the requests that ended in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestTimes>,
}

impl Interval {
    pub fn add(&mut self, other: &Self) {
        add_kinds(&mut self.kinds, &other.kinds);
        self.due += other.due;
        self.skipped += other.skipped;
        // Requests are written as they come, and not kept for the sum.
    }
}

/// Adds counts of the same kinds of transactions.
fn add_kinds(own: &mut [KindTally], other: &[KindTally]) {
    for (own, other) in own.iter_mut().zip(other) {
        own.add(other);
    }
}

impl Default for KindTally {
    fn default() -> Self {
        Self {
            latency_ns: histogram(),
            ok: 0,
            empty: 0,
            empty_key: None,
            refused: 0,
            errors: BTreeMap::new(),
        }
    }
}

impl KindTally {
    /// Transactions that were answered, whatever the answer was.
    pub fn answered(&self) -> u64 {
        self.latency_ns.len()
    }

    /// Answered, or lost with their connection.
    pub fn ended(&self) -> u64 {
        self.ok + self.refused + self.failed()
    }

    /// Those that ended with an error.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    pub fn add(&mut self, other: &Self) {
        self.latency_ns += &other.latency_ns;
        self.ok += other.ok;
        self.empty += other.empty;
        self.empty_key = self.empty_key.or(other.empty_key);
        self.refused += other.refused;
        add_counts(&mut self.errors, &other.errors);
    }
}

/// A server whose errors all differ, as by a number in them, has so many kinds at most; the others are
/// [`OTHER_KINDS`].
const KINDS_MAX: usize = 100;
const KIND_CHARS_MAX: usize = 48;
/// The kind of errors beyond [`KINDS_MAX`].
const OTHER_KINDS: &str = "other";
/// A text names so many kinds, those with the greatest counts.
const KINDS_NAMED: usize = 10;

/// Adds to the count of a kind.
pub fn add_count(counts: &mut BTreeMap<String, u64>, mut kind: String, count: u64) {
    if let Some((end, _)) = kind.char_indices().nth(KIND_CHARS_MAX) {
        kind.truncate(end);
    }
    if counts.len() >= KINDS_MAX && !counts.contains_key(&kind) {
        // A loss stays one: it is no answer.
        let prefix = match kind.starts_with(CONNECTION_LOST) {
            true => CONNECTION_LOST,
            false => "",
        };
        kind = format!("{prefix}{OTHER_KINDS}");
    }
    *counts.entry(kind).or_default() += count;
}

/// Adds counts by kind to others.
pub fn add_counts(own: &mut BTreeMap<String, u64>, other: &BTreeMap<String, u64>) {
    for (kind, count) in other {
        add_count(own, kind.clone(), *count);
    }
}

/// Counts by kind, as text: the greatest, and the sum of the others.
pub fn by_kind(counts: &BTreeMap<String, u64>) -> String {
    let mut sorted = Vec::from_iter(counts);
    // Equal ones stay in the order of their names.
    sorted.sort_by_key(|it| std::cmp::Reverse(*it.1));
    let named = sorted.iter().take(KINDS_NAMED);
    let named = named.map(|(kind, count)| format!("{count} × {kind}"));
    let text = Vec::from_iter(named).join(", ");
    match sorted.get(KINDS_NAMED..) {
        None | Some([]) => text,
        Some(rest) => {
            let sum: u64 = rest.iter().map(|it| it.1).sum();
            format!("{text}, {sum} × one of {} other kinds", rest.len())
        }
    }
}

/// What a worker has used, sent and received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceUsage {
    pub user_ns: u64,
    pub system_ns: u64,
    /// For how long its thread waited for a CPU; `None` where the kernel does not tell.
    pub run_queue_ns: Option<u64>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// How often a session of an engine waited for another one.
    pub waits: u64,
}

impl ResourceUsage {
    pub fn since(&self, before: &Self) -> Self {
        Self {
            user_ns: self.user_ns - before.user_ns,
            system_ns: self.system_ns - before.system_ns,
            run_queue_ns: self
                .run_queue_ns
                .zip(before.run_queue_ns)
                .map(|(after, before)| after.saturating_sub(before)),
            bytes_sent: self.bytes_sent - before.bytes_sent,
            bytes_received: self.bytes_received - before.bytes_received,
            waits: self.waits - before.waits,
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
        let both = self.run_queue_ns.zip(other.run_queue_ns);
        self.run_queue_ns = both.map(|(one, other)| one + other);
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.waits += other.waits;
    }

    pub fn cpu_ns(&self) -> u64 {
        self.user_ns + self.system_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_loses_nothing() {
        let mut first = Tally::new(2, 1);
        first.end(0, 0, 1_000, Ending::Ok);
        first.end(1, 0, 3_000, Ending::Error("ERR".to_owned()));
        (first.begin_ns, first.end_ns) = (5, 20);
        let mut second = Tally::new(2, 2);
        second.end(0, 1, 2_000, Ending::Refused);
        (second.begin_ns, second.end_ns) = (6, 30);
        let all = Tally::merged(vec![first, second]);
        assert_eq!(all.wall_ns(), 25);
        assert_eq!(all.sessions.len(), 3);
        assert_eq!(all.sessions[2].transactions, 1);
        let total = all.total();
        assert_eq!((total.ok, total.refused, total.failed()), (1, 1, 1));
        assert_eq!((total.answered(), total.ended()), (3, 3));
        assert_eq!(total.latency_ns.max(), 3_001);
    }

    #[test]
    fn errors_that_all_differ_have_a_limited_number_of_kinds() {
        let mut first = Tally::new(1, 1);
        let mut second = first.clone();
        for number in 0..500 {
            let (one, other) = (format!("A {number}"), format!("B {number}"));
            first.end(0, 0, 1, Ending::Error(one));
            second.lose(0, other);
        }
        let long = "é".repeat(1000);
        let mut counts = BTreeMap::new();
        add_count(&mut counts, long, 2);
        assert_eq!(counts, [("é".repeat(KIND_CHARS_MAX), 2)].into());
        assert_eq!(first.kinds[0].errors.len(), KINDS_MAX + 1);
        let all = Tally::merged(vec![first, second]).total();
        assert_eq!((all.errors.len(), all.failed()), (KINDS_MAX + 1, 1000));
        assert_eq!(all.errors[OTHER_KINDS], 900);
    }

    #[test]
    fn a_lost_connection_is_none_of_the_other_errors() {
        let mut tally = Tally::new(1, 1);
        for number in 0..2 * KINDS_MAX {
            tally.end(0, 0, 1, Ending::Error(format!("A {number}")));
        }
        for reason in ["reset by peer", "closed by the server"] {
            tally.lose(0, format!("{CONNECTION_LOST}{reason}"));
        }
        let errors = &Tally::merged(vec![tally]).total().errors;
        let lost = errors.iter().filter(|it| it.0.starts_with(CONNECTION_LOST));
        assert_eq!(lost.map(|it| it.1).sum::<u64>(), 2, "{errors:?}");
        assert_eq!(errors[OTHER_KINDS], KINDS_MAX as u64);
    }

    #[test]
    fn a_text_names_the_greatest_counts() {
        let counts = |kinds: u64| {
            let count = |it: u64| (format!("K{it:02}"), it);
            BTreeMap::from_iter((1..=kinds).map(count))
        };
        assert_eq!(by_kind(&counts(2)), "2 × K02, 1 × K01");
        let text = by_kind(&counts(12));
        assert!(text.starts_with("12 × K12, 11 × K11"), "{text}");
        assert!(
            text.ends_with("3 × K03, 3 × one of 2 other kinds"),
            "{text}"
        );
        assert_eq!(by_kind(&counts(0)), "");
    }

    #[test]
    fn what_ended_before_it_was_measured_has_no_times() {
        let nothing = Tally::merged(vec![Tally::new(1, 1), Tally::new(1, 1)]);
        assert_eq!((nothing.measured_ns(), nothing.wall_ns()), (None, 0));
        let mut measured = Tally::new(1, 1);
        (measured.begin_ns, measured.end_ns) = (5, 20);
        assert_eq!(measured.measured_ns(), Some((5, 20)));
    }

    #[test]
    fn a_tally_goes_from_process_to_process() {
        let mut tally = Tally::new(2, 1);
        tally.end(1, 0, 1_234_567, Ending::Error("BUSY".to_owned()));
        tally.connection_ns.record(777).unwrap();
        let text = serde_json::to_string(&tally).unwrap();
        let back: Tally = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
        assert_eq!(
            back.total().latency_ns.max(),
            tally.total().latency_ns.max()
        );
    }

    #[test]
    fn counts_reported_in_intervals_are_not_lost() {
        let mut tally = Tally::new(1, 1);
        tally.end(0, 0, 1_000, Ending::Ok);
        let mut sum = tally.take_interval(0);
        tally.end(0, 0, 2_000, Ending::Refused);
        sum.add(&tally.take_interval(1));
        tally.end(0, 0, 3_000, Ending::Ok);
        assert_eq!(tally.total().answered(), 1);
        tally.add_interval(&sum);
        assert_eq!((tally.total().ok, tally.total().refused), (2, 1));
        assert_eq!(tally.total().latency_ns.len(), 3);
    }

    #[test]
    fn what_is_beyond_the_scale_is_counted_at_its_end() {
        let mut tally = Tally::new(1, 1);
        tally.end(0, 0, u64::MAX / 2, Ending::Ok);
        tally.end(0, 0, 0, Ending::Ok);
        assert_eq!(tally.kinds[0].latency_ns.len(), 2);
    }
}
