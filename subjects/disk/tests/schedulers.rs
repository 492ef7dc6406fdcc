//! Properties of each scheduler, for random requests.

use concurve_disk::request::{Class, Direction, Priority, Request};
use concurve_disk::scheduler::anticipatory::{Anticipatory, AnticipatoryTunables};
use concurve_disk::scheduler::cfq::Cfq;
use concurve_disk::scheduler::deadline::{Deadline, DeadlineTunables};
use concurve_disk::scheduler::kind::Kind;
use concurve_disk::scheduler::{Decision, Scheduler};
use concurve_disk::time::{MILLISECOND, Time};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

const ALL: [Kind; 6] = [
    Kind::Noop,
    Kind::Deadline,
    Kind::Anticipatory,
    Kind::Cfq,
    Kind::MqDeadline,
    Kind::Bfq,
];

/// A request to be made, after a pause.
#[derive(Debug, Clone)]
struct Asked {
    pause: Time,
    request: Request,
}

/// A process has one priority.
fn priority_of(process: u32) -> Priority {
    Priority {
        class: match process {
            0 => Class::RealTime,
            1 | 2 => Class::Idle,
            _ => Class::BestEffort,
        },
        level: process as u8,
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    let place = (0u64..2_000, prop_oneof![Just(8u32), Just(16), Just(64)]);
    let kind = (any::<bool>(), any::<bool>(), 0u32..8);
    (0u64..30, place, kind).prop_map(|(pause, (place, sectors), (read, sync, process))| Asked {
        pause: pause * MILLISECOND,
        request: Request {
            sector: place * 8,
            sectors,
            direction: if read {
                Direction::Read
            } else {
                Direction::Write
            },
            sync: read || sync,
            process,
            priority: priority_of(process),
            arrived: 0,
            ticket: 0,
        },
    })
}

/// A scheduler and a device that serves one request in 5 ms; sees what is served when, and who
/// was merged into whom.
struct Bench {
    scheduler: Box<dyn Scheduler>,
    now: Time,
    at_work: Option<Request>,
    done_at: Time,
    served: Vec<(Time, Request)>,
    leaders: HashMap<u32, u32>,
    waiting: HashSet<u32>,
}

const SERVICE: Time = 5 * MILLISECOND;

impl Bench {
    fn new(scheduler: Box<dyn Scheduler>) -> Self {
        Self {
            scheduler,
            now: 0,
            at_work: None,
            done_at: 0,
            served: Vec::new(),
            leaders: HashMap::new(),
            waiting: HashSet::new(),
        }
    }

    fn ask(&mut self, mut request: Request, ticket: u32) {
        request.ticket = ticket;
        request.arrived = self.now;
        match self.scheduler.merge(&request, self.now) {
            Some(merge) => {
                self.leaders.insert(ticket, merge.into);
                if let Some(gone) = merge.bridged {
                    self.leaders.insert(gone.ticket, merge.into);
                    assert!(self.waiting.remove(&gone.ticket), "it waited");
                }
            }
            None => {
                self.scheduler.add(request, self.now);
                self.waiting.insert(ticket);
            }
        }
        assert_eq!(self.scheduler.waiting(), self.waiting.len());
    }

    /// Let the device work until `until`.
    fn work(&mut self, until: Time) {
        loop {
            if self.at_work.is_some() {
                if self.done_at > until {
                    break;
                }
                self.now = self.done_at;
                let request = self.at_work.take().unwrap();
                self.scheduler.completed(&request, self.now);
            }
            match self.scheduler.dispatch(self.now, 0) {
                Decision::Serve(request) => {
                    assert!(
                        self.waiting.remove(&request.ticket),
                        "served once, and asked for"
                    );
                    self.served.push((self.now, request));
                    self.at_work = Some(request);
                    self.done_at = self.now + SERVICE;
                }
                Decision::IdleUntil(time) if time <= until => {
                    assert!(time > self.now, "idling ends later");
                    self.now = time;
                }
                _ => break,
            }
        }
        self.now = self.now.max(until);
    }

    /// Make all requests, then let the device work until nothing waits.
    fn run(&mut self, all: &[Asked]) {
        for (ticket, asked) in all.iter().enumerate() {
            self.work(self.now + asked.pause);
            self.ask(asked.request, ticket as u32);
        }
        for _ in 0..10 * all.len() + 100 {
            if self.scheduler.waiting() == 0 && self.at_work.is_none() {
                return;
            }
            self.work(self.now + 1_000 * MILLISECOND);
        }
        panic!("{} requests wait for ever", self.scheduler.waiting());
    }
}

/// The requests that were made, by sector: each sector as often as it was asked for.
fn sectors(requests: impl Iterator<Item = Request>) -> HashMap<(u64, Direction), u32> {
    let mut counts = HashMap::new();
    for request in requests {
        for sector in (request.sector..request.end()).step_by(8) {
            *counts.entry((sector, request.direction)).or_default() += 1;
        }
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_request_is_lost_or_served_twice(all in prop::collection::vec(asked(), 1..150)) {
        for kind in ALL {
            let mut bench = Bench::new(kind.build());
            bench.run(&all);
            prop_assert!(bench.waiting.is_empty());
            prop_assert_eq!(bench.served.len() + bench.leaders.len(), all.len());
            let served = sectors(bench.served.iter().map(|it| it.1));
            prop_assert_eq!(served, sectors(all.iter().map(|it| it.request)), "{:?}", kind);
        }
    }

    /// Once a request's time is over it waits at most for the batch under way, the batches of
    /// reads that may go before a write, and those of its direction that are older.
    #[test]
    fn deadline_keeps_its_deadlines(all in prop::collection::vec(asked(), 1..150)) {
        for tunables in [DeadlineTunables::of_2_6_16(), DeadlineTunables::of_2_6_24()] {
            let mut bench = Bench::new(Box::new(Deadline::new(tunables)));
            bench.run(&all);
            let batch = u64::from(tunables.fifo_batch) * SERVICE;
            for (at, request) in &bench.served {
                let (expire, batches) = match request.direction {
                    Direction::Read => (tunables.read_expire, 2),
                    Direction::Write => (tunables.write_expire, 2 + u64::from(tunables.writes_starved)),
                };
                let older = bench.served.iter().filter(|(then, it)| {
                    then < at && *then > request.arrived + expire
                        && it.direction == request.direction && it.arrived <= request.arrived
                }).count() as u64;
                let bound = request.arrived + expire + batch * batches * (older + 1);
                prop_assert!(*at <= bound, "{request:?} at {at}, bound {bound}");
            }
        }
    }

    /// While a higher class waits, no lower one is sent, but for a quantum that was decided on
    /// before the higher one came.
    #[test]
    fn cfq_never_inverts_its_classes(all in prop::collection::vec(asked(), 1..150)) {
        let mut bench = Bench::new(Box::new(Cfq::new(Default::default())));
        bench.run(&all);
        for (at, request) in &bench.served {
            for (then, other) in &bench.served {
                let waited = other.arrived < *at && at < then;
                let decided_since = other.arrived + 4 * SERVICE < *at;
                if waited && decided_since && other.sync && request.sync {
                    prop_assert!(
                        request.priority.class <= other.priority.class,
                        "{request:?} at {at} before {other:?} at {then}"
                    );
                }
            }
        }
    }

    /// Requests of one direction that are all there from the start: without anticipation it is
    /// the sweep of deadline.
    #[test]
    fn anticipation_off_gives_the_order_of_deadline(
        places in prop::collection::hash_set(0u64..100_000, 1..100), read in any::<bool>(),
    ) {
        let off = AnticipatoryTunables {
            antic_expire: 0,
            ..Default::default()
        };
        let order = |scheduler: Box<dyn Scheduler>| {
            let mut bench = Bench::new(scheduler);
            for (ticket, place) in places.iter().enumerate() {
                let direction = if read { Direction::Read } else { Direction::Write };
                bench.ask(
                    Request {
                        sector: place * 64,
                        sectors: 8,
                        direction,
                        sync: read,
                        process: 1,
                        priority: Priority::NORMAL,
                        arrived: 0,
                        ticket: 0,
                    },
                    ticket as u32,
                );
            }
            // Less than any deadline, so that the sweep alone decides.
            let mut sent = Vec::new();
            while let Decision::Serve(request) = bench.scheduler.dispatch(bench.now, 0) {
                sent.push(request.sector);
                bench.scheduler.completed(&request, bench.now);
            }
            sent
        };
        let anticipatory = order(Box::new(Anticipatory::new(off)));
        let deadline = order(Box::new(Deadline::new(DeadlineTunables::of_2_6_16())));
        prop_assert_eq!(anticipatory, deadline);
    }
}

fn plain(sector: u64, direction: Direction) -> Request {
    Request {
        sector,
        sectors: 8,
        direction,
        sync: direction == Direction::Read,
        process: 3,
        priority: priority_of(3),
        arrived: 0,
        ticket: 0,
    }
}

/// When `request` is served if it arrives during an endless sweep of reads: at any time two more
/// reads wait ahead of the head.
fn served_beside_an_endless_sweep(tunables: DeadlineTunables, request: Request) -> Time {
    let mut bench = Bench::new(Box::new(Deadline::new(tunables)));
    // With gaps, so that nothing is merged.
    let ahead = |number: u32| plain(1_000_000 + u64::from(number) * 16, Direction::Read);
    bench.ask(ahead(1), 1);
    bench.work(1);
    bench.ask(request, 0);
    for number in 2..3_000 {
        bench.ask(ahead(number), number);
        if number > 3 {
            bench.work(bench.now + SERVICE);
        }
    }
    let found = bench.served.iter().find(|it| it.1.ticket == 0);
    found.expect("it is served at last").0
}

#[test]
fn a_read_behind_an_endless_sweep_is_served_when_its_time_is_over() {
    for tunables in [DeadlineTunables::of_2_6_16(), DeadlineTunables::of_2_6_24()] {
        let at = served_beside_an_endless_sweep(tunables, plain(0, Direction::Read));
        let batch = u64::from(tunables.fifo_batch + 1) * SERVICE;
        let expires = tunables.read_expire;
        assert!((expires..=expires + batch).contains(&at), "at {at}");
    }
}

#[test]
fn a_write_among_endless_reads_waits_for_so_many_batches() {
    let tunables = DeadlineTunables::of_2_6_24();
    let at = served_beside_an_endless_sweep(tunables, plain(0, Direction::Write));
    let passed = u64::from(tunables.writes_starved + 1) * u64::from(tunables.fifo_batch);
    assert!((2..=passed).contains(&(at / SERVICE)), "at {at}");
}
