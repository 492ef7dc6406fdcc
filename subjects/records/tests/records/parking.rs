//! Sessions that share one thread: they park for locks, and confirm their commits together.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};

use concurve_records::command::{Client, Command, Refusal, Reply};
use concurve_records::{Durability, Engine, EngineOptions, Latching, Status, Waiting};
use proptest::prelude::*;

const ALL: [Latching; 3] = [Latching::Global, Latching::File, Latching::Record];
const WAITING: Refusal = Refusal::Status(Status::Waiting);

/// An engine with one file of numbers and balances, and the numbers of sessions whose waker was
/// called.
struct Bench {
    engine: Engine,
    called: Arc<Mutex<Vec<usize>>>,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn new(latching: Latching, durability: Durability, records: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = EngineOptions {
            latching,
            durability,
            cache_pages: 64,
            ..EngineOptions::default()
        };
        let (engine, _) = Engine::open(folder.path(), options).unwrap();
        let mut client = Client::new(engine.session());
        done(&mut client, "CREATE f 24 KEY 0:12:text");
        for number in 0..records {
            done(&mut client, &format!("INSERT f {}", record(number, 0)));
        }
        Self {
            engine,
            called: Arc::default(),
            _folder: folder,
        }
    }

    fn client(&self, number: usize) -> Client {
        let called = Arc::clone(&self.called);
        let mut session = self.engine.session();
        session.set_waiting(Waiting::Parks(Arc::new(move || {
            called.lock().unwrap().push(number);
        })));
        Client::new(session)
    }

    fn called(&self) -> Vec<usize> {
        std::mem::take(&mut self.called.lock().unwrap())
    }
}

fn record(number: usize, balance: i64) -> String {
    format!("{number:012}{balance:012}")
}

fn run(client: &mut Client, text: &str) -> Result<Option<i64>, Refusal> {
    let words: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
    let command = Command::parse(&words[..]).unwrap();
    Ok(match client.execute(&command, &words[..])? {
        Reply::Field(_, number) => Some(number),
        _ => None,
    })
}

fn done(client: &mut Client, text: &str) {
    run(client, text).unwrap_or_else(|error| panic!("{text}: {error}"));
}

fn confirmed(client: &mut Client, text: &str) {
    done(client, text);
    client.session().confirm().unwrap();
}

fn read(number: usize) -> String {
    format!("GET EQUAL f 0 {number:012} SINGLE FIELD 12 12")
}

#[test]
fn a_parked_session_is_called_and_continues() {
    for latching in ALL {
        let bench = Bench::new(latching, Durability::Group, 2);
        let [mut one, mut two, mut three] = [1, 2, 3].map(|it| bench.client(it));
        for client in [&mut one, &mut two, &mut three] {
            done(client, "BEGIN");
        }
        done(&mut one, &read(0));
        done(&mut one, &format!("UPDATE f {}", record(0, 5)));
        assert_eq!(run(&mut two, &read(0)), Err(WAITING));
        assert_eq!(run(&mut three, &read(0)), Err(WAITING));
        assert_eq!(run(&mut two, &read(0)), Err(WAITING), "not called yet");
        done(&mut one, "END");
        assert_eq!(
            bench.called(),
            [],
            "no commit is durable before it is confirmed"
        );
        one.session().confirm().unwrap();
        assert_eq!(bench.called(), [2], "in the order of the queue");
        assert_eq!(run(&mut two, &read(0)), Ok(Some(5)));
        confirmed(&mut two, "ABORT");
        assert_eq!(bench.called(), [3]);
        assert_eq!(run(&mut three, &read(0)), Ok(Some(5)));
    }
}

#[test]
fn a_deadlock_of_parked_sessions_is_reported_to_one_of_them() {
    let bench = Bench::new(Latching::Record, Durability::None, 2);
    let [mut one, mut two] = [1, 2].map(|it| bench.client(it));
    for (client, number) in [(&mut one, 0), (&mut two, 1)] {
        done(client, "BEGIN");
        done(client, &read(number));
    }
    assert_eq!(run(&mut one, &read(1)), Err(WAITING));
    let outcome = loop {
        match run(&mut two, &read(0)) {
            Err(refusal) if refusal == WAITING => std::thread::yield_now(),
            other => break other,
        }
    };
    assert_eq!(outcome, Err(Refusal::Status(Status::Deadlock)));
    assert_eq!(bench.engine.statistics().deadlocks, 1);
    done(&mut two, "ABORT");
    assert_eq!(bench.called(), [1]);
    done(&mut one, &read(1));
}

#[test]
fn a_session_that_ends_while_parked_leaves_no_lock() {
    let bench = Bench::new(Latching::Record, Durability::None, 1);
    for is_granted in [false, true] {
        let [mut one, mut two, mut three] = [1, 2, 3].map(|it| bench.client(it));
        done(&mut one, &read(0));
        assert_eq!(run(&mut two, &read(0)), Err(WAITING));
        assert_eq!(run(&mut three, &read(0)), Err(WAITING));
        if is_granted {
            drop(one);
            drop(two);
        } else {
            drop(two);
            drop(one);
        }
        done(&mut three, &read(0));
        drop(three);
        assert_eq!((bench.engine.locks(), bench.engine.waiting()), (0, 0));
    }
}

#[test]
fn commits_of_several_sessions_are_forced_together() {
    const SESSIONS: usize = 20;
    for (durability, syncs) in [(Durability::Group, 1), (Durability::Each, SESSIONS as u64)] {
        let bench = Bench::new(Latching::Record, durability, SESSIONS);
        let mut clients: Vec<Client> = (0..SESSIONS).map(|it| bench.client(it)).collect();
        let before = bench.engine.statistics();
        for (number, client) in clients.iter_mut().enumerate() {
            done(client, &read(number));
            done(client, &format!("UPDATE f {}", record(number, 1)));
            assert!(client.session().is_unconfirmed());
        }
        for client in &mut clients {
            client.session().confirm().unwrap();
        }
        let after = bench.engine.statistics();
        assert_eq!(after.log_syncs - before.log_syncs, syncs);
        assert_eq!(after.commits - before.commits, SESSIONS as u64);
        drop(clients);
        assert_eq!(bench.engine.locks(), 0);
    }
}

#[test]
fn many_records_are_read_at_once_however_often_the_session_waits() {
    let bench = Bench::new(Latching::Record, Durability::None, 10);
    let [mut one, mut two] = [1, 2].map(|it| bench.client(it));
    done(&mut two, "GET FIRST f 0");
    done(&mut one, &read(5));
    let words: Vec<&[u8]> = b"GET NEXT f COUNT 7 MULTIPLE"
        .split(|it| *it == b' ')
        .collect();
    let command = Command::parse(&words[..]).unwrap();
    assert_eq!(two.execute(&command, &words[..]), Err(WAITING));
    drop(one);
    let expected: String = (1..8).map(|number| record(number, 0)).collect();
    let reply = two.execute(&command, &words[..]);
    assert_eq!(
        reply,
        Ok(Reply::Many {
            records: expected.as_bytes(),
            record_bytes: 24
        })
    );
}

/// The progress of a session that moves 1 from a record to another one.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    Begin,
    Take,
    Put,
    End,
}

fn step(client: &mut Client, at: Step, (from, to): (usize, usize)) -> Result<Step, Refusal> {
    let mut change = |number: usize, by: i64| {
        let balance = run(client, &read(number))?.expect("a number");
        run(
            client,
            &format!("UPDATE f {}", record(number, balance + by)),
        )
    };
    Ok(match at {
        Step::Begin => run(client, "BEGIN").map(|_| Step::Take)?,
        Step::Take => change(from, -1).map(|_| Step::Put)?,
        Step::Put => change(to, 1).map(|_| Step::End)?,
        Step::End => run(client, "END").map(|_| Step::Begin)?,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// In whatever order one thread runs the sessions, and whichever ends: no money is lost, and
    /// each transaction ends.
    #[test]
    fn one_thread_serves_many_transfers(
        choices in prop::collection::vec((0..6_usize, 0..5_usize, 1..5_usize, 0..40_u8), 50..300),
        latching in prop::sample::select(&ALL[..]),
    ) {
        let bench = Bench::new(latching, Durability::Group, 5);
        let mut clients: Vec<_> = (0..6).map(|it| (bench.client(it), Step::Begin, (0, 1))).collect();
        let deadlocks = AtomicUsize::new(0);
        let advance = |slot: &mut (Client, Step, (usize, usize))| {
            let (client, at, transfer) = slot;
            match step(client, *at, *transfer) {
                Ok(next) => *at = next,
                Err(Refusal::Status(Status::Waiting)) => {}
                Err(Refusal::Status(Status::Deadlock)) => {
                    deadlocks.fetch_add(1, SeqCst);
                    run(client, "ABORT").unwrap();
                    *at = Step::Begin;
                }
                Err(error) => panic!("{error}"),
            }
        };
        for (index, from, distance, fate) in choices {
            if fate == 0 {
                clients[index] = (bench.client(index), Step::Begin, (0, 1));
            }
            if clients[index].1 == Step::Begin {
                clients[index].2 = (from, (from + distance) % 5);
            }
            advance(&mut clients[index]);
            if fate < 20 {
                clients.iter_mut().for_each(|it| it.0.session().confirm().unwrap());
            }
        }
        while clients.iter().any(|it| it.1 != Step::Begin) {
            for slot in clients.iter_mut().filter(|it| it.1 != Step::Begin) {
                advance(slot);
            }
            clients.iter_mut().for_each(|it| it.0.session().confirm().unwrap());
        }
        let mut client = Client::new(bench.engine.session());
        let sum: i64 = (0..5).map(|it| run(&mut client, &read(it)).unwrap().unwrap()).sum();
        prop_assert_eq!(sum, 0);
        drop((client, clients));
        prop_assert_eq!((bench.engine.locks(), bench.engine.waiting()), (0, 0));
        bench.engine.verify().unwrap();
    }
}
