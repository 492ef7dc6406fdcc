//! The counting of an open loop in simulated time, against what the log of a simulated server says.
//! The clock, the server and the lateness of the generator are the test's, so the figures are exact.

use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::open_loop::{Due, OpenLoop, Schedule};
use super::recorder::{Outstanding, Recorder, Traffic, WorkerMessage};
use super::session::ScheduledTransaction;
use crate::counts::tally::Tally;
use crate::figures::distribution::Distribution;
use crate::figures::steady::{self, Ending as LastAnswer, Steadiness};
use crate::figures::unanswered;
use crate::plan::{End, Pace, Spread, Task};
use crate::workload::{Ending, TransactionKind};

const SECOND_NS: u64 = 1_000_000_000;

/// How a server treats a request that comes at a time: when it answers, if ever.
#[derive(Debug, Clone, Copy)]
enum Server {
    Steady {
        service_ns: u64,
    },
    /// It stops answering at this time.
    Stops {
        service_ns: u64,
        at_ns: u64,
    },
    /// It answers nothing in the first 200 ms of each second.
    Pauses {
        service_ns: u64,
    },
    /// It answers one in ten.
    OneInTen {
        service_ns: u64,
    },
}

impl Server {
    fn answers(self, number: u64, at_ns: u64) -> Option<u64> {
        match self {
            Self::Steady { service_ns } => Some(at_ns + service_ns),
            Self::Stops {
                service_ns,
                at_ns: stop_ns,
            } => Some(at_ns + service_ns).filter(|it| *it < stop_ns),
            Self::Pauses { service_ns } => {
                let answer_ns = at_ns + service_ns;
                let into_ns = answer_ns % SECOND_NS;
                Some(answer_ns + (SECOND_NS / 5).saturating_sub(into_ns))
            }
            Self::OneInTen { service_ns } => {
                number.is_multiple_of(10).then_some(at_ns + service_ns)
            }
        }
    }
}

/// A load on a simulated server.
#[derive(Debug, Clone, Copy)]
struct Simulated {
    server: Server,
    sessions: usize,
    rate: f64,
    spread: Spread,
    backlog_max: usize,
    warm_up_ns: u64,
    end: End,
    /// When it is stopped by the user.
    stopped_ns: u64,
    /// The generator wakes up so much too late, at most.
    late_ns: u64,
    seed: u64,
}

/// A request in the log of the server.
#[derive(Debug, Clone, Copy)]
struct Served {
    arrived_ns: u64,
    answered_ns: Option<u64>,
}

/// What came of it.
struct Outcome {
    tally: Tally,
    log: Vec<Served>,
    /// When requests were due that were skipped, as the schedule said.
    skipped: Vec<u64>,
    end_ns: u64,
}

fn kinds() -> [TransactionKind; 1] {
    [TransactionKind {
        name: "get".to_owned(),
        weight: 1,
        round_trips: std::iter::once(0..1).collect(),
    }]
}

impl Simulated {
    fn task(&self) -> Task {
        Task {
            begin_ns: 0,
            ramp_ns: 0,
            warm_up_ns: self.warm_up_ns,
            pace: Pace::Open {
                rate_per_second: self.rate,
                spread: self.spread,
                backlog_max: self.backlog_max,
            },
            end: self.end,
            interval_ns: Some(SECOND_NS / 3),
            among: None,
        }
    }

    /// All due times up to the end, by a schedule of their own.
    fn dues(&self, end_ns: u64) -> Vec<u64> {
        let mut random = SmallRng::seed_from_u64(self.seed);
        let mut schedule = Schedule::new(
            self.rate,
            self.spread,
            &self.task().part(0..1, 1),
            0,
            &mut random,
        );
        let next = || schedule.take(u64::MAX, &mut random);
        std::iter::from_fn(next)
            .take_while(|it| *it < end_ns)
            .collect()
    }

    /// How many transactions a session is to do.
    fn share(&self, session: usize) -> u64 {
        match self.end {
            End::Transactions { number, .. } => {
                let sessions = self.sessions as u64;
                number / sessions + u64::from((session as u64) < number % sessions)
            }
            End::After { .. } => u64::MAX,
        }
    }

    /// Runs it as the event loop does.
    fn run(&self) -> Outcome {
        let (task, kinds) = (self.task(), kinds());
        let mut random = SmallRng::seed_from_u64(self.seed);
        let mut lateness = SmallRng::seed_from_u64(!self.seed);
        let mut recorder = Recorder::of_kinds(1, 0, &vec![1; self.sessions], false);
        recorder.begin(task);
        let idle = (0..self.sessions)
            .filter(|it| self.share(*it) > 0)
            .collect();
        let number = (0..self.sessions)
            .map(|session| self.share(session))
            .fold(0, u64::saturating_add);
        let own = task.part(0..1, 1);
        let mut open = OpenLoop::of(&task, &own, number, idle, &mut random).unwrap();
        let mut sums: Option<crate::counts::tally::Interval> = None;
        let mut send = |message: WorkerMessage| {
            if let WorkerMessage::Interval(interval) = message {
                match &mut sums {
                    Some(sum) => sum.add(&interval),
                    first => *first = Some(interval),
                }
            }
        };
        // Of each session: what it has under way, and when that is answered.
        let mut under_way: Vec<Option<(ScheduledTransaction, u64)>> = vec![None; self.sessions];
        let (mut log, mut skipped) = (Vec::new(), Vec::new());
        let mut remaining: Vec<u64> = (0..self.sessions)
            .map(|session| self.share(session))
            .collect();
        let mut now = 0;
        loop {
            recorder.advance(now, Traffic::default, &mut send);
            let is_unfinished =
                |session: &usize| remaining[*session] > 0 || under_way[*session].is_some();
            let unfinished = (0..self.sessions).filter(is_unfinished).count();
            let is_done = unfinished == 0 || open.is_over(unfinished);
            if now >= task.end_ns() || now >= self.stopped_ns || is_done {
                break;
            }
            let mut begin = |remaining: &mut u64, due_ns: u64| {
                *remaining -= u64::from(due_ns >= task.measure_ns());
                let answered_ns = self.server.answers(log.len() as u64, now);
                log.push(Served {
                    arrived_ns: now,
                    answered_ns,
                });
                let transaction = ScheduledTransaction {
                    kind: 0,
                    due_ns,
                    begun_ns: now,
                };
                Some((transaction, answered_ns.unwrap_or(u64::MAX)))
            };
            // Answers first, then what has become due.
            for session in 0..self.sessions {
                let answered = under_way[session].filter(|it| it.1 <= now);
                let Some((transaction, _)) = answered else {
                    continue;
                };
                recorder.ended(session, transaction, now, Ending::Ok);
                under_way[session] = None;
                if remaining[session] > 0
                    && let Some(due_ns) = open.free(session)
                {
                    recorder.begun(due_ns, now);
                    under_way[session] = begin(&mut remaining[session], due_ns);
                }
            }
            while let Some(due) = open.next(now, &mut random) {
                recorder.due(due, &kinds, &mut random);
                match due {
                    Due::Begin { session, due_ns } => {
                        recorder.begun(due_ns, now);
                        under_way[session] = begin(&mut remaining[session], due_ns);
                    }
                    Due::Waits { .. } => {}
                    Due::Skipped { due_ns } => skipped.push(due_ns),
                }
            }
            let answers = under_way.iter().flatten().map(|it| it.1);
            let next = answers.chain([open.due_ns(), recorder.due_ns(), self.stopped_ns]);
            let late_ns = match self.late_ns {
                0 => 0,
                most => lateness.random_range(0..most),
            };
            now = next.min().unwrap().max(now) + late_ns;
        }
        let waiting = recorder.end_schedule(open, now, &kinds, &mut random);
        let begun = under_way.iter().enumerate().filter_map(|(session, it)| {
            it.map(|(transaction, _)| Outstanding::under_way(session, transaction))
        });
        let outstanding: Vec<Outstanding> = begun.chain(waiting).collect();
        let traffic = Traffic::default();
        let outstanding = outstanding.into_iter();
        let mut tally = recorder.finish(now, outstanding, &remaining, traffic, &mut send);
        if let Some(sum) = &sums {
            assert_eq!(sum.skipped, tally.skipped);
            assert_eq!(sum.due, tally.due);
            tally.add_interval(sum);
        }
        Outcome {
            tally,
            log,
            skipped,
            end_ns: now.min(task.end_ns()),
        }
    }

    /// Latencies by the log of the server and the schedule alone: requests are sent in the order in
    /// which they are due, so the next that arrives is the next that was due and not skipped.
    fn by_server(&self, outcome: &Outcome) -> (Vec<u64>, u64) {
        let mut arrivals = outcome.log.iter();
        let mut skipped = outcome.skipped.iter().peekable();
        let (mut latencies, mut answered) = (Vec::new(), 0);
        for due_ns in self.dues(outcome.end_ns) {
            let is_skipped = skipped.next_if_eq(&&due_ns).is_some();
            let served = if is_skipped { None } else { arrivals.next() };
            if due_ns < self.warm_up_ns {
                continue;
            }
            let in_time = |it: &u64| *it <= outcome.end_ns;
            let answered_ns = served.and_then(|it| it.answered_ns).filter(in_time);
            assert!(served.is_none_or(|it| it.arrived_ns >= due_ns));
            answered += u64::from(answered_ns.is_some());
            latencies.push(answered_ns.unwrap_or(outcome.end_ns) - due_ns);
        }
        latencies.sort_unstable();
        (latencies, answered)
    }
}

fn quantile(sorted: &[u64], share: f64) -> u64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

impl Outcome {
    fn latency(&mut self) -> Distribution {
        let pace = Pace::Open {
            rate_per_second: 1.0,
            spread: Spread::Constant,
            backlog_max: 0,
        };
        let total = self.tally.total();
        unanswered::distributions(pace, &mut self.tally, &total).latency
    }

    fn steadiness(&self) -> Steadiness {
        let last_ns = self.tally.sessions.iter().map(|it| it.last_ns).max();
        let ending = LastAnswer {
            end_ns: self.tally.wall_ns(),
            all_ran_ns: self.tally.wall_ns(),
            last_answer_ns: last_ns.unwrap_or(0),
            longest_ns: self.tally.total().latency_ns.max(),
            has_unanswered: self.tally.unanswered > 0,
        };
        steady::judge(&self.tally.timeline, ending, None)
    }
}

/// Percentiles and counts are those of the log of the server. A generator that wakes up late sees
/// answers late, and those of the last moment not at all: then the log is a lower bound.
fn assert_like_the_log(simulated: &Simulated) -> Outcome {
    let mut outcome = simulated.run();
    let (latencies, answered) = simulated.by_server(&outcome);
    let tally = &outcome.tally;
    assert_eq!(tally.due, latencies.len() as u64);
    assert_eq!(
        tally.due,
        tally.total().answered() + tally.unanswered + tally.skipped
    );
    assert!(tally.total().answered() <= answered);
    if simulated.late_ns == 0 {
        assert_eq!(tally.total().answered(), answered);
    }
    let latency = outcome.latency();
    if latencies.is_empty() {
        return outcome;
    }
    for share in [0.5, 0.9, 0.99, 0.999] {
        let found = latency.percentile(share, None).ns as f64;
        let truth = quantile(&latencies, share) as f64;
        // A bucket of the histograms is 0.1 % wide; the age of a skipped request comes from the
        // time at which it was due, in such a bucket.
        let close_ns = 0.002 * truth + 0.001 * outcome.end_ns as f64 * skips(&outcome) + 2.0;
        assert!(found >= truth - close_ns, "{share}: {found}, log {truth}");
        if simulated.late_ns == 0 {
            assert!(found <= truth + close_ns, "{share}: {found}, log {truth}");
        }
    }
    outcome
}

fn skips(outcome: &Outcome) -> f64 {
    f64::from(u8::from(outcome.tally.skipped > 0))
}

const USUAL: Simulated = Simulated {
    server: Server::Steady {
        service_ns: 1_003_001,
    },
    sessions: 20,
    rate: 1000.0,
    spread: Spread::Constant,
    backlog_max: 100_000,
    warm_up_ns: 0,
    end: End::After { ns: 4 * SECOND_NS },
    stopped_ns: u64::MAX,
    late_ns: 0,
    seed: 1,
};

#[test]
fn a_server_that_stops_at_half_time_has_a_p99_that_says_so() {
    let simulated = Simulated {
        server: Server::Stops {
            service_ns: 1_003_001,
            at_ns: 2 * SECOND_NS,
        },
        ..USUAL
    };
    let mut outcome = assert_like_the_log(&simulated);
    assert_eq!((outcome.tally.due, outcome.tally.unanswered), (3999, 2001));
    let steadiness = outcome.steadiness();
    let Steadiness::Silent { since_ns } = steadiness else {
        panic!("{steadiness:?}");
    };
    assert!(since_ns.abs_diff(2 * SECOND_NS) < 2_000_000);
    let latency = outcome.latency();
    for (share, least_ns) in [(0.9, 1.59e9), (0.99, 1.95e9), (0.999, 1.99e9)] {
        let found = latency.percentile(share, Some(&outcome.tally.timeline));
        assert!(found.is_censored && found.ns as f64 > least_ns, "{found:?}");
        assert_eq!(found.high_ns, None);
    }
    assert!(latency.mean().is_censored && latency.max().is_censored);
}

#[test]
fn what_is_usually_under_way_at_the_end_marks_nothing() {
    for spread in [Spread::Constant, Spread::Poisson] {
        let simulated = Simulated { spread, ..USUAL };
        let mut outcome = assert_like_the_log(&simulated);
        assert!(outcome.tally.unanswered <= 5);
        assert!(matches!(outcome.steadiness(), Steadiness::Steady));
        let latency = outcome.latency();
        for share in [0.5, 0.9, 0.99, 0.999] {
            let found = latency.percentile(share, Some(&outcome.tally.timeline));
            assert!(!found.is_censored, "{share}: {found:?}");
        }
    }
}

#[test]
fn a_server_that_pauses_has_the_percentiles_of_its_log_and_is_steady() {
    let server = Server::Pauses {
        service_ns: 1_003_001,
    };
    for backlog_max in [100_000, 30] {
        let end = End::After { ns: 12 * SECOND_NS };
        let simulated = Simulated {
            server,
            backlog_max,
            end,
            ..USUAL
        };
        let outcome = assert_like_the_log(&simulated);
        assert!(!matches!(outcome.steadiness(), Steadiness::Silent { .. }));
    }
}

#[test]
fn a_server_that_answers_one_in_ten_has_no_good_percentile() {
    let server = Server::OneInTen {
        service_ns: 1_003_001,
    };
    let mut outcome = assert_like_the_log(&Simulated { server, ..USUAL });
    let latency = outcome.latency();
    for share in [0.5, 0.9, 0.99] {
        assert!(latency.percentile(share, None).is_censored, "{share}");
    }
}

fn servers() -> impl Strategy<Value = Server> {
    let service = 1_001u64..30_000_003;
    prop_oneof![
        service
            .clone()
            .prop_map(|service_ns| Server::Steady { service_ns }),
        (service.clone(), 0u64..2 * SECOND_NS)
            .prop_map(|(service_ns, at_ns)| Server::Stops { service_ns, at_ns }),
        service
            .clone()
            .prop_map(|service_ns| Server::Pauses { service_ns }),
        service.prop_map(|service_ns| Server::OneInTen { service_ns }),
    ]
}

prop_compose! {
    fn loads()(
        server in servers(),
        sessions in 1usize..30,
        rate in 20f64..2000.0,
        is_poisson: bool,
        backlog_max in prop_oneof![Just(100_000usize), 0usize..60],
        warm_up_ns in prop_oneof![Just(0), 0..SECOND_NS],
        length_ns in SECOND_NS / 10..2 * SECOND_NS,
        stopped_ns in prop_oneof![Just(u64::MAX), 0..3 * SECOND_NS],
        late_ns in prop_oneof![Just(0), 0u64..50_000_000],
        seed: u64,
    ) -> Simulated {
        let spread = if is_poisson { Spread::Poisson } else { Spread::Constant };
        let end = End::After { ns: length_ns };
        Simulated {
            server, sessions, rate, spread, backlog_max, warm_up_ns, end, stopped_ns, late_ns, seed,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_was_due_is_counted_once_with_its_latency(simulated in loads()) {
        // Stopped before, it has measured nothing.
        prop_assume!(simulated.stopped_ns >= simulated.warm_up_ns);
        assert_like_the_log(&simulated);
    }

    #[test]
    fn a_number_is_done_or_accounted_for(simulated in loads(), number in 1u64..400, limited: bool) {
        let stopped_ns = simulated.stopped_ns.min(4 * SECOND_NS);
        let within_ns = limited.then_some(SECOND_NS);
        let end = End::Transactions { number, within_ns };
        let outcome = Simulated { end, stopped_ns, ..simulated }.run();
        let tally = &outcome.tally;
        let answered = tally.total().answered();
        prop_assert!(tally.due <= number);
        prop_assert_eq!(tally.due, answered + tally.unanswered + tally.skipped);
        if outcome.end_ns < stopped_ns {
            prop_assert_eq!(tally.due + tally.not_begun, number);
            prop_assert!(limited || tally.unanswered + tally.not_begun == 0);
        }
    }
}
