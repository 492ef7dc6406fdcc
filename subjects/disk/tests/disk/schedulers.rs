//! Properties of each scheduler, for random requests.

use concurve_disk::request::{Class, Direction, Priority, Request};
use concurve_disk::scheduler::anticipatory::{Anticipatory, AnticipatoryTunables};
use concurve_disk::scheduler::cfq::Cfq;
use concurve_disk::scheduler::cfq2::{Cfq2, Cfq2Tunables, Order};
use concurve_disk::scheduler::deadline::{Deadline, DeadlineTunables};
use concurve_disk::scheduler::kind::Kind;
use concurve_disk::scheduler::{Admission, Decision, Scheduler};
use concurve_disk::time::{MILLISECOND, SECOND, Time};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

const ALL: [Kind; 7] = [
    Kind::Noop,
    Kind::Deadline,
    Kind::Anticipatory,
    Kind::Cfq,
    Kind::Cfq2,
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

    /// cfq2 sends something whenever something waits.
    #[test]
    fn cfq2_never_keeps_the_disk_idle(all in prop::collection::vec(asked(), 1..150)) {
        let mut scheduler = Cfq2::new(Cfq2Tunables::default());
        for (ticket, asked) in (0..).zip(&all) {
            let request = Request { ticket, ..asked.request };
            if scheduler.merge(&request, 0).is_none() {
                scheduler.add(request, 0);
            }
        }
        while scheduler.waiting() > 0 {
            let decision = scheduler.dispatch(0, 0);
            prop_assert!(matches!(decision, Decision::Serve(_)), "{decision:?}");
        }
    }

    /// Of busy processes each has one request in a round, and a round is one sweep.
    #[test]
    fn cfq2_takes_one_request_of_each_process_in_a_round(
        processes in 4u32..12, rounds in 1u32..8, seed in 0u64..1_000,
    ) {
        let mut bench = Bench::new(Kind::Cfq2.build());
        for ticket in 0..processes * rounds {
            // With gaps, so that nothing is merged, and in no order.
            let place = (u64::from(ticket) * 7_919 + seed) % 10_007;
            let request = Request {
                process: ticket % processes,
                ..plain(place * 64, Direction::Read)
            };
            bench.ask(request, ticket);
        }
        bench.work(SECOND);
        prop_assert_eq!(bench.served.len() as u32, processes * rounds);
        for round in bench.served.chunks(processes as usize) {
            let served: HashSet<u32> = round.iter().map(|it| it.1.process).collect();
            prop_assert_eq!(served.len() as u32, processes);
            let wraps = round.windows(2).filter(|it| it[1].1.sector < it[0].1.sector).count();
            prop_assert!(wraps <= 1, "one sweep, {wraps} wraps");
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

/// When `request` is served if it arrives during an endless sweep of reads: at any time ten more
/// reads wait ahead of the head.
fn served_beside_an_endless_sweep(scheduler: Box<dyn Scheduler>, request: Request) -> Time {
    let mut bench = Bench::new(scheduler);
    // With gaps, so that nothing is merged.
    let ahead = |number: u32| plain(1_000_000 + u64::from(number) * 16, Direction::Read);
    bench.ask(ahead(1), 1);
    bench.work(1);
    bench.ask(request, 0);
    for number in 2..3_000 {
        bench.ask(ahead(number), number);
        if number > 11 {
            bench.work(bench.now + SERVICE);
        }
    }
    let found = bench.served.iter().find(|it| it.1.ticket == 0);
    found.expect("it is served at last").0
}

#[test]
fn a_read_behind_an_endless_sweep_is_served_when_its_time_is_over() {
    for tunables in [DeadlineTunables::of_2_6_16(), DeadlineTunables::of_2_6_24()] {
        let scheduler = Box::new(Deadline::new(tunables));
        let at = served_beside_an_endless_sweep(scheduler, plain(0, Direction::Read));
        let batch = u64::from(tunables.fifo_batch + 1) * SERVICE;
        let expires = tunables.read_expire;
        assert!((expires..=expires + batch).contains(&at), "at {at}");
    }
}

#[test]
fn a_write_among_endless_reads_waits_for_so_many_batches() {
    let tunables = DeadlineTunables::of_2_6_24();
    let scheduler = Box::new(Deadline::new(tunables));
    let at = served_beside_an_endless_sweep(scheduler, plain(0, Direction::Write));
    let passed = u64::from(tunables.writes_starved + 1) * u64::from(tunables.fifo_batch);
    assert!((2..=passed).contains(&(at / SERVICE)), "at {at}");
}

// -- cfq2 ---------------------------------------------------------------------------------------

/// The kernel's two lists are indexed by "is synchronous", and their times by "is a write".
#[test]
fn cfq2_lets_an_asynchronous_request_expire_after_the_time_of_reads() {
    let tunables = Cfq2Tunables::default();
    for (direction, expire) in [
        (Direction::Write, tunables.fifo_expire_r),
        (Direction::Read, tunables.fifo_expire_w),
    ] {
        let at = served_beside_an_endless_sweep(Kind::Cfq2.build(), plain(0, direction));
        let dispatch = (tunables.quantum as u64 + 1) * SERVICE;
        let bound = expire..=expire + dispatch;
        assert!(bound.contains(&at), "{direction:?} at {at}");
    }
}

#[test]
fn cfq2_goes_back_a_short_way_at_twice_the_price() {
    let mut scheduler = by_turns();
    let head = 1_000_000;
    let now = serve_alone(&mut scheduler, plain(head, Direction::Read), 0, MILLISECOND);
    for (ticket, sector) in [(1, head + 1_000), (2, head - 400), (3, 0)] {
        let request = plain(sector, Direction::Read);
        scheduler.add(Request { ticket, ..request }, now);
    }
    // Back by 408 for 816 rather than on by 992; what is further back than 16 MiB at last.
    assert_eq!(order(&mut scheduler, now), [2, 1, 3]);
}

/// Sends all that waits; returns the tickets in order.
fn order(scheduler: &mut dyn Scheduler, now: Time) -> Vec<u32> {
    let mut sent = Vec::new();
    while let Decision::Serve(request) = scheduler.dispatch(now, 0) {
        sent.push(request.ticket);
        scheduler.completed(&request, now);
    }
    sent
}

fn of(process: u32, ticket: u32) -> Request {
    let sector = 100_000 * u64::from(process) + 64 * u64::from(ticket);
    Request {
        process,
        ticket,
        ..plain(sector, Direction::Read)
    }
}

fn by_turns() -> Cfq2 {
    Cfq2::new(Cfq2Tunables {
        order: Order::Turns,
        ..Default::default()
    })
}

/// Serves one request of a process that takes so long.
fn serve_alone(scheduler: &mut Cfq2, request: Request, now: Time, takes: Time) -> Time {
    scheduler.add(request, now);
    assert_eq!(scheduler.dispatch(now, 0), Decision::Serve(request));
    scheduler.completed(&request, now + takes);
    now + takes
}

#[test]
fn cfq2_prefers_the_process_whose_requests_took_less_time() {
    let mut scheduler = by_turns();
    let now = serve_alone(&mut scheduler, of(1, 0), 0, 50 * MILLISECOND);
    let now = serve_alone(&mut scheduler, of(2, 1), now, 5 * MILLISECOND);
    scheduler.add(of(1, 2), now);
    scheduler.add(of(2, 3), now);
    assert_eq!(order(&mut scheduler, now), [3, 2]);
}

#[test]
fn cfq2_forgets_service_that_is_older_than_a_second() {
    let mut scheduler = by_turns();
    let now = serve_alone(&mut scheduler, of(1, 0), 0, 32 * MILLISECOND);
    let now = serve_alone(&mut scheduler, of(2, 1), now + SECOND, 5 * MILLISECOND);
    // 32 ms became 4: it comes back after more than a second.
    scheduler.add(of(1, 2), now);
    scheduler.add(of(2, 3), now);
    assert_eq!(order(&mut scheduler, now), [2, 3]);
}

#[test]
fn cfq2_counts_requests_once_the_disk_takes_four_at_a_time() {
    let mut scheduler = by_turns();
    (10..14).for_each(|ticket| scheduler.add(of(3, ticket), 0));
    for _ in 0..4 {
        assert!(matches!(scheduler.dispatch(0, 0), Decision::Serve(_)));
    }
    (10..14).for_each(|ticket| scheduler.completed(&of(3, ticket), 0));

    let mut now = serve_alone(&mut scheduler, of(1, 0), 0, 50 * MILLISECOND);
    for ticket in 1..4 {
        now = serve_alone(&mut scheduler, of(2, ticket), now, MILLISECOND);
    }
    scheduler.add(of(2, 4), now);
    scheduler.add(of(1, 5), now);
    assert_eq!(
        order(&mut scheduler, now),
        [5, 4],
        "fewer requests, though slower ones"
    );
}

#[test]
fn cfq2_admits_eight_of_a_process_always_and_then_its_share() {
    let mut scheduler = Cfq2::new(Cfq2Tunables::default());
    let mut admitted = |process: u32, most: u32, full: bool| {
        let first = process * 1_000;
        for count in 0..most {
            let request = of(process, first + count);
            if scheduler.admission(&request, full) != Admission::Yes {
                return count;
            }
            scheduler.add(request, 0);
        }
        most
    };
    assert_eq!(admitted(1, 100, false), 32, "alone: a quarter of the queue");
    assert_eq!(admitted(2, 100, true), 8, "a full queue lets eight in");
    for process in 3..16 {
        assert_eq!(admitted(process, 1, false), 1);
    }
    assert_eq!(admitted(20, 100, false), 8, "128 for 16 busy ones");
    let request = of(20, 99);
    assert_eq!(
        scheduler.admission(&request, false),
        Admission::NotThisProcess
    );
    let done = served(&mut scheduler, 20);
    scheduler.completed(&done, 0);
    assert_eq!(scheduler.admission(&request, false), Admission::Yes);
}

/// Sends requests until one of the process comes.
fn served(scheduler: &mut Cfq2, process: u32) -> Request {
    loop {
        match scheduler.dispatch(0, 0) {
            Decision::Serve(request) if request.process == process => return request,
            Decision::Serve(_) => {}
            other => panic!("{other:?} before process {process}"),
        }
    }
}

#[test]
fn cfq2_merges_at_the_end_for_all_and_at_the_beginning_for_its_own() {
    let mut scheduler = Cfq2::new(Cfq2Tunables::default());
    scheduler.add(plain(1_000, Direction::Read), 0);
    let asked = |sector, process| Request {
        process,
        ..plain(sector, Direction::Read)
    };
    assert_eq!(scheduler.merge(&asked(992, 4), 0), None);
    assert!(scheduler.merge(&asked(1_008, 4), 0).is_some());
    assert!(scheduler.merge(&asked(992, 3), 0).is_some());
    assert_eq!(scheduler.waiting(), 1);
}
