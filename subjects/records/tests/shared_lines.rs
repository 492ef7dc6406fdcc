//! How many writes each operation makes to memory that other sessions use: none for a read outside
//! of a transaction. Prints the counts for `docs/programs/records.md`.
//!
//! One test: the counts of latches are those of the whole process.

mod common;

use std::collections::BTreeMap;

use common::{BALANCES, Teller, make_bank, options};
use concurve_records::{
    Durability, Engine, EngineOptions, FileHandle, Get, Latching, LockBias, Session, Status,
    TransactionKind, Waiting, shared_writes,
};

/// Latches that only one session takes, but for who asks all sessions: what it holds; what it has gathered for
/// the log; and its part of a file, unless there are more sessions than parts.
const OWN: [&str; 3] = ["record session", "gathered log", "file locks"];
const ROUNDS: u64 = 100;

/// Writes to shared words, and latches taken: each is a word that is written twice.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
struct Writes {
    words: u64,
    latches: BTreeMap<String, u64>,
}

fn now() -> Writes {
    let classes = concurve_latch::counts().into_iter();
    let shared = classes.filter(|it| !OWN.contains(&&*it.name));
    Writes {
        words: shared_writes(),
        latches: shared.map(|it| (it.name, it.acquisitions)).collect(),
    }
}

/// The writes of an operation, which is repeated after it has been done some times.
fn writes(what: &str, mut operation: impl FnMut(u64)) -> Writes {
    (0..20).for_each(&mut operation);
    let before = now();
    (20..20 + ROUNDS).for_each(&mut operation);
    let after = now();
    let since = |name: &str, now: u64| now - before.latches.get(name).copied().unwrap_or(0);
    let latches = after.latches.iter();
    let latches = latches.map(|(name, now)| (name.clone(), since(name, *now)));
    let writes = Writes {
        words: after.words - before.words,
        latches: latches.filter(|it| it.1 > 0).collect(),
    };
    let each = writes.all() as f64 / ROUNDS as f64;
    println!("{what}: {each:.2} ({writes:?} in {ROUNDS})");
    writes
}

impl Writes {
    fn all(&self) -> u64 {
        self.words + 2 * self.latches.values().sum::<u64>()
    }
}

fn ask(session: &mut Session, file: FileHandle, get: Get) -> Result<usize, Status> {
    session.get(file, get, LockBias::None).map(<[u8]>::len)
}

#[test]
fn reads_outside_of_transactions_write_nothing_that_others_use() {
    let folder = tempfile::tempdir().unwrap();
    let options = EngineOptions {
        // So that the log stays in one file.
        checkpoint_bytes: 16 << 20,
        ..options(Latching::Record, Durability::None)
    };
    // Without the thread of the checkpointer.
    let (engine, _) = Engine::open_shared(folder.path(), options).unwrap();
    make_bank(&engine);
    // A spare file of the log, which each commit would ask for.
    engine.do_due_work().unwrap();
    let mut teller = Teller::new(&engine, 1).unwrap();
    teller.transact().unwrap();
    let nothing = Writes::default();
    // Another session holds locks of other records, so that all structures are in use.
    let mut other = engine.session();
    let others_file = other.open("branches").unwrap();
    other.begin(TransactionKind::Concurrent).unwrap();
    let bias = LockBias::MultipleWait;
    other
        .get(others_file, Get::Equal(0, &3_u32.to_le_bytes()), bias)
        .unwrap();

    let mut session = engine.session();
    let accounts = session.open("accounts").unwrap();
    let history = session.open("history").unwrap();
    let key = |round: u64| (round as u32 * 7 % BALANCES[0].1).to_le_bytes();

    let equal = writes("read by a key", |round| {
        ask(&mut session, accounts, Get::Equal(0, &key(round))).unwrap();
    });
    assert_eq!(equal, nothing, "a read by a key");
    let bounds = writes("read by a bound, in each direction", |round| {
        ask(&mut session, accounts, Get::Greater(0, &key(round % 50))).unwrap();
        ask(&mut session, accounts, Get::AtLeast(0, &key(round))).unwrap();
        ask(&mut session, accounts, Get::Less(0, &key(1 + round % 50))).unwrap();
        ask(&mut session, accounts, Get::AtMost(0, &key(round))).unwrap();
    });
    assert_eq!(bounds, nothing, "reads by a bound");
    let scan = writes("read of the next record", |round| {
        let get = if round % 25 == 0 {
            Get::First(0)
        } else {
            Get::Next
        };
        ask(&mut session, accounts, get).unwrap();
    });
    assert_eq!(scan, nothing, "reads of the next records");
    let back = writes("read of the previous record", |round| {
        let get = if round % 25 == 0 {
            Get::Last(0)
        } else {
            Get::Previous
        };
        ask(&mut session, accounts, get).unwrap();
    });
    assert_eq!(back, nothing, "reads of the previous records");
    let absent = writes("read of a value that no record has", |round| {
        let value = (1_000_000 + round as u32).to_le_bytes();
        let found = ask(&mut session, accounts, Get::Equal(0, &value));
        assert_eq!(found, Err(Status::KeyNotFound));
        let found = ask(&mut session, accounts, Get::Greater(0, &value));
        assert_eq!(found, Err(Status::EndOfFile));
        let found = ask(&mut session, history, Get::Equal(1, &value));
        assert_eq!(found, Err(Status::KeyNotFound));
    });
    assert_eq!(absent, nothing, "reads of absent values");
    let mut parked = engine.session();
    parked.set_waiting(Waiting::Parks(std::sync::Arc::new(|| {})));
    let parked_accounts = parked.open("accounts").unwrap();
    let served = writes("read by a session that parks", |round| {
        ask(&mut parked, parked_accounts, Get::Equal(0, &key(round))).unwrap();
    });
    assert_eq!(served, nothing, "a read by a session of a server");

    // What others do is counted, so that the zeros above mean something. There are more sessions than the
    // gate admits on a machine with two CPUs, and it adds nothing.
    let in_transaction = writes("transaction that reads one record", |round| {
        session.begin(TransactionKind::Concurrent).unwrap();
        ask(&mut session, accounts, Get::Equal(0, &key(round))).unwrap();
        session.end().unwrap();
    });
    // The lock, taken and released.
    assert_eq!(
        (in_transaction.words, in_transaction.all()),
        (2 * ROUNDS, 2 * ROUNDS)
    );
    session.begin(TransactionKind::Concurrent).unwrap();
    let in_one = writes("read of another record in a transaction", |round| {
        ask(&mut session, accounts, Get::Equal(0, &key(round))).unwrap();
    });
    session.end().unwrap();
    assert!(in_one.all() < in_transaction.all());
    let updates = writes("update of one record, outside of a transaction", |round| {
        let get = Get::Equal(0, &key(round));
        let mut record = session.get(accounts, get, LockBias::None).unwrap().to_vec();
        record[50] = record[50].wrapping_add(1);
        session.update(accounts, &record).unwrap();
    });
    assert!(updates.all() > in_transaction.all());
    assert_eq!(updates.latches["log"], ROUNDS, "one step for each commit");
    assert_eq!(updates.latches["page"], ROUNDS, "the record's page, once");
    // The lock, taken and released; the latch of the page, and that of the log with its new end.
    assert!(updates.all() <= 7 * ROUNDS);
    assert!(!updates.latches.contains_key("log writer"));
    other.abort().unwrap();
    let tpcb = writes("transaction of TPC-B", |_| teller.transact().unwrap());
    assert!(tpcb.all() > updates.all());
    // Seven locks, which nobody else asks for, six pages, the log, and a place for the record: now and then a
    // leaf is split, a page is new, or two locks have the same word.
    assert!(tpcb.all() < 34 * ROUNDS);
    let lock_latches = tpcb.latches.get("record locks").copied().unwrap_or(0);
    assert!(lock_latches < ROUNDS / 5, "{lock_latches}");
    // Now and then a leaf is split, or a page is new.
    let appends = tpcb.latches["log"];
    assert!(
        (ROUNDS..ROUNDS + ROUNDS / 10).contains(&appends),
        "{appends}"
    );
    // Of many sessions, those that work at the same time have parts of a file for themselves.
    let opened = |_| {
        let mut session = engine.session();
        // The gate would admit only some of them.
        session.set_waiting(Waiting::Refuses);
        let accounts = session.open("accounts").unwrap();
        (session, accounts)
    };
    let mut sessions: Vec<(Session, FileHandle)> = (0..40).map(opened).collect();
    let file_locks = || {
        let classes = concurve_latch::counts();
        let class = classes.into_iter().find(|it| it.name == "file locks");
        class.map_or(0, |it| it.acquisitions)
    };
    // More than there are parts share some, whose latches are counted by this name.
    for (session, accounts) in &mut sessions {
        session.begin(TransactionKind::Concurrent).unwrap();
        ask(session, *accounts, Get::Equal(0, &key(1))).unwrap();
    }
    assert!(file_locks() > 0);
    for (session, _) in &mut sessions {
        session.end().unwrap();
    }
    let before = file_locks();
    for some in sessions.chunks_mut(20) {
        for (session, accounts) in some.iter_mut().step_by(2) {
            session.begin(TransactionKind::Concurrent).unwrap();
            ask(session, *accounts, Get::Equal(0, &key(1))).unwrap();
        }
        for (session, _) in some.iter_mut().step_by(2) {
            session.end().unwrap();
        }
    }
    assert_eq!(file_locks(), before);
}
