//! How many writes each operation makes to memory that other sessions use: none for a read outside
//! of a transaction. Prints the counts for `docs/programs/records.md`.
//!
//! One test: the counts of latches are those of the whole process.

mod common;

use std::collections::BTreeMap;

use common::{BALANCES, Teller, make_bank, options};
use concurve_records::{
    Durability, Engine, FileHandle, Get, Latching, LockBias, Session, Status, TransactionKind,
    Waiting, shared_writes,
};

/// The latch of a session: only its own thread takes it.
const OWN: &str = "record session";
const ROUNDS: u64 = 100;

/// Writes to shared words, and latches taken: each is a word that is written twice.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
struct Writes {
    words: u64,
    latches: BTreeMap<String, u64>,
}

fn now() -> Writes {
    let classes = concurve_latch::counts().into_iter();
    let shared = classes.filter(|it| it.name != OWN);
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
    let options = options(Latching::Record, Durability::None);
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

    // What others do is counted, so that the zeros above mean something.
    let in_transaction = writes("transaction that reads one record", |round| {
        session.begin(TransactionKind::Concurrent).unwrap();
        ask(&mut session, accounts, Get::Equal(0, &key(round))).unwrap();
        session.end().unwrap();
    });
    assert!(in_transaction.words > 0 && !in_transaction.latches.is_empty());
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
    other.abort().unwrap();
    let tpcb = writes("transaction of TPC-B", |_| teller.transact().unwrap());
    assert!(tpcb.all() > updates.all());
}
