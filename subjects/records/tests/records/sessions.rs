//! The results of operations, and sessions that wait for each other.

use std::sync::Barrier;

use concurve_records::{
    Durability, Engine, EngineOptions, Fault, FileDefinition, FileHandle, Get, Key, Latching,
    LockBias, Segment, SegmentKind, Session, Status, TransactionKind, Waiting,
};

use crate::common::{LATCHINGS, options};

/// A number, a name, and a counter.
fn definition() -> FileDefinition {
    FileDefinition {
        record_bytes: 10,
        keys: vec![
            Key::unique(0, 2, SegmentKind::Integer),
            Key {
                segments: vec![
                    Segment {
                        offset: 2,
                        bytes: 2,
                        kind: SegmentKind::Bytes,
                    },
                    Segment {
                        offset: 0,
                        bytes: 2,
                        kind: SegmentKind::Integer,
                    },
                ],
                duplicates: true,
            },
        ],
    }
}

fn record(number: i16, name: &[u8; 2], count: u8) -> [u8; 10] {
    let mut record = [count; 10];
    record[..2].copy_from_slice(&number.to_le_bytes());
    record[2..4].copy_from_slice(name);
    record
}

struct Bench {
    engine: Engine,
    _folder: tempfile::TempDir,
}

impl Bench {
    /// An engine with a file of the given numbers.
    fn new(latching: Latching, numbers: &[i16]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = options(latching, Durability::None);
        let (engine, _) = Engine::open(folder.path(), options).unwrap();
        engine.create_file("file", &definition()).unwrap();
        let bench = Self {
            engine,
            _folder: folder,
        };
        let (mut session, file) = bench.session();
        for number in numbers {
            session.insert(file, &record(*number, b"ab", 0)).unwrap();
        }
        bench
    }

    fn session(&self) -> (Session, FileHandle) {
        let mut session = self.engine.session();
        let file = session.open("file").unwrap();
        (session, file)
    }

    /// A session that does not wait.
    fn hasty(&self) -> (Session, FileHandle) {
        let (mut session, file) = self.session();
        session.set_waiting(Waiting::Refuses);
        (session, file)
    }
}

fn number(record: &[u8]) -> i16 {
    i16::from_le_bytes(record[..2].try_into().unwrap())
}

fn find(
    session: &mut Session,
    file: FileHandle,
    wanted: i16,
    bias: LockBias,
) -> Result<i16, Status> {
    let found = session.get(file, Get::Equal(0, &wanted.to_le_bytes()), bias)?;
    Ok(number(found))
}

fn raise(session: &mut Session, file: FileHandle, wanted: i16) -> Result<(), Status> {
    let bias = LockBias::MultipleWait;
    let value = wanted.to_le_bytes();
    let mut record = session.get(file, Get::Equal(0, &value), bias)?.to_vec();
    record[9] += 1;
    session.update(file, &record)
}

#[test]
fn every_failure_has_its_status() {
    let bench = Bench::new(Latching::Record, &[1, 2]);
    let (mut session, file) = bench.session();
    let none = LockBias::None;
    assert_eq!(session.open("other"), Err(Status::FileNotFound));
    assert_eq!(session.delete(file), Err(Status::InvalidPosition));
    let next = session.get(file, Get::Next, none).map(<[u8]>::len);
    assert_eq!(next, Err(Status::InvalidPosition));
    let mut ask = |get| session.get(file, get, none).map(number);
    assert_eq!(ask(Get::Equal(0, &[9, 0])), Err(Status::KeyNotFound));
    assert_eq!(ask(Get::Equal(2, &[9, 0])), Err(Status::InvalidKeyNumber));
    assert_eq!(ask(Get::Equal(0, &[9])), Err(Status::KeyLength));
    assert_eq!(ask(Get::Greater(0, &[2, 0])), Err(Status::EndOfFile));
    assert_eq!(ask(Get::First(0)), Ok(1));
    assert_eq!(ask(Get::Previous), Err(Status::EndOfFile));
    assert_eq!(session.insert(file, &[1; 9]), Err(Status::RecordLength));
    let twice = session.insert(file, &record(2, b"xy", 0));
    assert_eq!(twice, Err(Status::DuplicateKey));
    assert_eq!(session.end(), Err(Status::NoTransaction));
    assert_eq!(session.abort(), Err(Status::NoTransaction));
    session.begin(TransactionKind::Concurrent).unwrap();
    let twice = session.begin(TransactionKind::Exclusive);
    assert_eq!(twice, Err(Status::TransactionActive));
    session.end().unwrap();
    // Changed by another session since it was read.
    find(&mut session, file, 1, none).unwrap();
    let (mut other, other_file) = bench.session();
    raise(&mut other, other_file, 1).unwrap();
    other.unlock(other_file).unwrap();
    let changed = session.update(file, &record(1, b"ab", 7));
    assert_eq!(changed, Err(Status::Conflict));
    // A handle of another session.
    let second = other.open("file").unwrap();
    assert_eq!(session.unlock(second), Err(Status::FileNotOpen));
    assert_eq!(Status::Conflict.code(), 80);
    assert!(Status::Deadlock.to_string().starts_with("78: "));
}

#[test]
fn invalid_definitions_and_folders_are_refused() {
    let bench = Bench::new(Latching::Record, &[]);
    let refused = |name: &str, definition: &FileDefinition| {
        let made = bench.engine.create_file(name, definition);
        made.unwrap_err().to_string()
    };
    assert!(refused("file", &definition()).contains("already"));
    assert!(refused("../file", &definition()).contains("not a valid name of a file"));
    let mut many = definition();
    many.keys = vec![Key::unique(0, 2, SegmentKind::Bytes); 120];
    assert!(refused("many", &many).contains("120 keys"));
    let mut long = definition();
    long.record_bytes = 9000;
    assert!(refused("long", &long).contains("9000 bytes"));
    let mut outside = definition();
    outside.keys[0].segments[0].offset = 9;
    assert!(refused("outside", &outside).contains("reaches byte 11"));
    let mut wide = definition();
    wide.keys[0].segments[0].bytes = 9;
    assert!(refused("wide", &wide).contains("numbers have 1 to 8"));
    let again = Engine::open(bench._folder.path(), EngineOptions::default());
    assert!(matches!(again, Err(Fault::InUse)));
    let folder = tempfile::tempdir().unwrap();
    let small = EngineOptions {
        cache_pages: 3,
        ..EngineOptions::default()
    };
    let small = Engine::open(folder.path(), small).map(|_| ()).unwrap_err();
    assert!(small.to_string().contains("3 pages is too small"));
}

#[test]
fn records_come_in_the_order_of_the_key() {
    let bench = Bench::new(Latching::Record, &[5, -3, 300, 0, -400]);
    let (mut session, file) = bench.session();
    session.insert(file, &record(7, b"aa", 0)).unwrap();
    let mut all = |key, get: Get| {
        let first = if get == Get::Next {
            Get::First(key)
        } else {
            Get::Last(key)
        };
        let mut found = vec![number(session.get(file, first, LockBias::None).unwrap())];
        while let Ok(record) = session.get(file, get, LockBias::None) {
            found.push(number(record));
        }
        found
    };
    assert_eq!(all(0, Get::Next), [-400, -3, 0, 5, 7, 300]);
    assert_eq!(all(0, Get::Previous), [300, 7, 5, 0, -3, -400]);
    assert_eq!(all(1, Get::Next), [7, -400, -3, 0, 5, 300]);
}

#[test]
fn many_records_survive_splits_and_deletes() {
    for latching in LATCHINGS {
        let bench = Bench::new(latching, &[]);
        let (mut session, file) = bench.session();
        // Every number once, neither ascending nor descending.
        let numbers = || (0..6000_i32).map(|it| (it * 2891 % 6000 - 3000) as i16);
        session.begin(TransactionKind::Concurrent).unwrap();
        for number in numbers() {
            session.insert(file, &record(number, b"ab", 0)).unwrap();
        }
        session.end().unwrap();
        bench.engine.verify().unwrap();
        for number in numbers().filter(|it| it % 3 != 0) {
            find(&mut session, file, number, LockBias::None).unwrap();
            session.delete(file).unwrap();
        }
        bench.engine.verify().unwrap();
        let expected: Vec<i16> = (-3000..3000).filter(|it| it % 3 == 0).collect();
        let mut found = Vec::new();
        let mut get = Get::Last(0);
        while let Ok(record) = session.get(file, get, LockBias::None) {
            found.insert(0, number(record));
            get = Get::Previous;
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn one_of_two_deadlocked_sessions_is_the_victim() {
    for latching in LATCHINGS {
        let bench = Bench::new(latching, &[1, 2]);
        let both = Barrier::new(2);
        let deadlocks = std::thread::scope(|scope| {
            let threads = [(1, 2), (2, 1)].map(|(first, second)| {
                let (mut session, file) = bench.session();
                let both = &both;
                scope.spawn(move || {
                    session.begin(TransactionKind::Concurrent).unwrap();
                    raise(&mut session, file, first).unwrap();
                    both.wait();
                    match raise(&mut session, file, second) {
                        Ok(()) => session.end().map(|()| 0).unwrap(),
                        Err(Status::Deadlock) => session.abort().map(|()| 1).unwrap(),
                        Err(status) => panic!("{status}"),
                    }
                })
            });
            threads.map(|it| it.join().unwrap())
        });
        assert_eq!(deadlocks.iter().sum::<i32>(), 1);
        let (mut session, file) = bench.session();
        for wanted in [1_i16, 2] {
            let value = wanted.to_le_bytes();
            let found = session.get(file, Get::Equal(0, &value), LockBias::None);
            assert_eq!(found.unwrap()[9], 1, "one transaction raised both");
        }
    }
}

#[test]
fn two_sessions_that_read_before_they_write_deadlock() {
    let bench = Bench::new(Latching::Record, &[1]);
    let both = Barrier::new(2);
    let deadlocks = std::thread::scope(|scope| {
        let threads = [0, 1].map(|_| {
            let (mut session, file) = bench.session();
            let both = &both;
            scope.spawn(move || {
                session.begin(TransactionKind::Concurrent).unwrap();
                find(&mut session, file, 1, LockBias::None).unwrap();
                both.wait();
                match session.update(file, &record(1, b"ab", 9)) {
                    Ok(()) => session.end().map(|()| 0).unwrap(),
                    Err(Status::Deadlock) => session.abort().map(|()| 1).unwrap(),
                    Err(status) => panic!("{status}"),
                }
            })
        });
        threads.map(|it| it.join().unwrap())
    });
    assert_eq!(deadlocks.iter().sum::<i32>(), 1);
}

#[test]
fn a_waiting_session_continues_when_the_other_ends() {
    for latching in LATCHINGS {
        for commits in [true, false] {
            let bench = Bench::new(latching, &[1]);
            let (mut session, file) = bench.session();
            session.begin(TransactionKind::Concurrent).unwrap();
            raise(&mut session, file, 1).unwrap();
            let count = std::thread::scope(|scope| {
                let (mut other, file) = bench.session();
                let waiter = scope.spawn(move || {
                    let value = 1_i16.to_le_bytes();
                    let get = Get::Equal(0, &value);
                    other.get(file, get, LockBias::None).unwrap()[9]
                });
                while bench.engine.waiting() == 0 {
                    std::thread::yield_now();
                }
                if commits {
                    session.end().unwrap();
                } else {
                    session.abort().unwrap();
                }
                waiter.join().unwrap()
            });
            assert_eq!(count, u8::from(commits));
            assert_eq!(bench.engine.locks(), 0);
        }
    }
}

#[test]
fn reads_of_a_transaction_are_repeatable_without_phantoms() {
    let bench = Bench::new(Latching::Record, &[10, 20, 30]);
    let (mut reader, file) = bench.session();
    let (mut writer, other) = bench.hasty();
    let none = LockBias::None;
    let mut insert = |number| writer.insert(other, &record(number, b"ab", 0));
    reader.begin(TransactionKind::Concurrent).unwrap();
    assert_eq!(find(&mut reader, file, 15, none), Err(Status::KeyNotFound));
    assert_eq!(insert(15), Err(Status::RecordInUse));
    assert_eq!(insert(25), Ok(()));
    reader.get(file, Get::AtLeast(0, &[20, 0]), none).unwrap();
    while reader.get(file, Get::Next, none).is_ok() {}
    assert_eq!(insert(40), Err(Status::RecordInUse));
    assert_eq!(insert(5), Ok(()));
    reader.end().unwrap();
    assert_eq!(insert(40), Ok(()));
}

#[test]
fn an_exclusive_transaction_locks_the_whole_file() {
    let bench = Bench::new(Latching::Record, &[1]);
    let (mut alone, file) = bench.hasty();
    let (mut other, other_file) = bench.hasty();
    let none = LockBias::None;
    alone.begin(TransactionKind::Exclusive).unwrap();
    raise(&mut alone, file, 1).unwrap();
    let in_use = find(&mut other, other_file, 1, none);
    assert_eq!(in_use, Err(Status::FileInUse));
    alone.abort().unwrap();
    assert_eq!(find(&mut other, other_file, 1, none), Ok(1));
    other.begin(TransactionKind::Concurrent).unwrap();
    find(&mut other, other_file, 1, none).unwrap();
    alone.begin(TransactionKind::Exclusive).unwrap();
    assert_eq!(find(&mut alone, file, 1, none), Err(Status::FileInUse));
    other.end().unwrap();
    assert_eq!(find(&mut alone, file, 1, none), Ok(1));
}

#[test]
fn locks_of_reads_are_kept_singly_or_together() {
    let bench = Bench::new(Latching::Record, &[1, 2, 3]);
    let (mut session, file) = bench.session();
    let (mut other, other_file) = bench.session();
    let no_wait = LockBias::SingleNoWait;
    let mut is_locked = |wanted| {
        let found = find(&mut other, other_file, wanted, no_wait);
        other.unlock(other_file).unwrap();
        match found {
            Ok(_) => false,
            Err(Status::RecordInUse) => true,
            Err(status) => panic!("{status}"),
        }
    };
    find(&mut session, file, 1, LockBias::SingleWait).unwrap();
    assert!(is_locked(1));
    find(&mut session, file, 2, LockBias::SingleWait).unwrap();
    assert!(!is_locked(1) && is_locked(2));
    find(&mut session, file, 1, LockBias::MultipleWait).unwrap();
    find(&mut session, file, 3, LockBias::MultipleWait).unwrap();
    assert!(is_locked(1) && is_locked(2) && is_locked(3));
    session.unlock(file).unwrap();
    assert!(!is_locked(1) && !is_locked(2) && !is_locked(3));
    // An update releases a single lock.
    find(&mut session, file, 1, LockBias::SingleWait).unwrap();
    session.update(file, &record(1, b"zz", 0)).unwrap();
    assert!(!is_locked(1));
    // In a transaction nothing is released before its end.
    session.begin(TransactionKind::Concurrent).unwrap();
    find(&mut session, file, 1, LockBias::SingleWait).unwrap();
    find(&mut session, file, 2, LockBias::SingleWait).unwrap();
    assert!(is_locked(1) && is_locked(2));
    session.end().unwrap();
    assert!(!is_locked(1) && !is_locked(2));
    find(&mut session, file, 3, LockBias::MultipleWait).unwrap();
    drop(session);
    assert!(!is_locked(3));
    drop(other);
    assert_eq!(bench.engine.locks(), 0);
}

#[test]
fn a_session_that_is_dropped_has_not_committed() {
    let bench = Bench::new(Latching::Record, &[1]);
    let (mut session, file) = bench.session();
    session.begin(TransactionKind::Concurrent).unwrap();
    session.insert(file, &record(2, b"ab", 0)).unwrap();
    raise(&mut session, file, 1).unwrap();
    drop(session);
    let (mut session, file) = bench.session();
    let none = LockBias::None;
    assert_eq!(find(&mut session, file, 2, none), Err(Status::KeyNotFound));
    bench.engine.verify().unwrap();
    let value = 1_i16.to_le_bytes();
    assert_eq!(
        session.get(file, Get::Equal(0, &value), none).unwrap()[9],
        0
    );
}

/// A cache that holds a small part of the file, and one transaction larger than the cache.
#[test]
fn files_may_be_larger_than_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let options = EngineOptions {
        cache_pages: 64,
        durability: Durability::None,
        checkpoint_bytes: 1 << 20,
        ..EngineOptions::default()
    };
    let (engine, _) = Engine::open(folder.path(), options.clone()).unwrap();
    let definition = FileDefinition {
        record_bytes: 2000,
        keys: vec![Key::unique(0, 2, SegmentKind::Integer)],
    };
    engine.create_file("large", &definition).unwrap();
    let mut session = engine.session();
    let file = session.open("large").unwrap();
    let long = |number: i16, fill| {
        let mut record = vec![fill; 2000];
        record[..2].copy_from_slice(&number.to_le_bytes());
        record
    };
    for kind in [TransactionKind::Concurrent, TransactionKind::Exclusive] {
        session.begin(kind).unwrap();
        for number in 0..2000 {
            session.insert(file, &long(number, 1)).unwrap();
        }
        if kind == TransactionKind::Concurrent {
            session.abort().unwrap();
        } else {
            session.end().unwrap();
        }
        engine.verify().unwrap();
    }
    drop(session);
    drop(engine);
    let (engine, recovered) = Engine::open(folder.path(), options).unwrap();
    assert_eq!(recovered.undone, 0);
    engine.verify().unwrap();
    let mut session = engine.session();
    let file = session.open("large").unwrap();
    for wanted in (0..2000_i16).rev() {
        let value = wanted.to_le_bytes();
        let found = session.get(file, Get::Equal(0, &value), LockBias::None);
        assert_eq!(found, Ok(&long(wanted, 1)[..]));
    }
}
