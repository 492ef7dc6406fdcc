//! Reads outside of transactions while others write, move, abort, and make the cache evict pages: each
//! sees a whole record, which was committed, and no older one than was known to be committed before.
//!
//! Without the checks after such a read (of the pages' versions, or of the locks) these tests fail.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use concurve_records::{
    Durability, Engine, EngineOptions, FileDefinition, FileHandle, Get, Key, Latching, LockBias,
    SegmentKind, Session, Status, TransactionKind,
};

use crate::common::{LATCHINGS, options};

/// More pages than the smallest cache has.
const NUMBERS: u32 = 640;
const RECORD_BYTES: usize = 1000;
/// Written before the transaction is sure to commit.
const NOT_COMMITTED: u8 = 0xee;

/// A number, a version, and a filler that says the version again, or [`NOT_COMMITTED`].
fn record(number: u32, version: u64, is_final: bool) -> Vec<u8> {
    let filler = match is_final {
        true => version as u8 % 0xee,
        false => NOT_COMMITTED,
    };
    let mut record = vec![filler; RECORD_BYTES];
    record[..4].copy_from_slice(&number.to_le_bytes());
    record[4..12].copy_from_slice(&version.to_le_bytes());
    record
}

/// The number and the version of a record that is whole and committed.
fn checked(record: &[u8]) -> (u32, u64) {
    let number = u32::from_le_bytes(record[..4].try_into().unwrap());
    let version = u64::from_le_bytes(record[4..12].try_into().unwrap());
    assert_eq!(
        record,
        self::record(number, version, true),
        "record {number}"
    );
    (number, version)
}

struct Random(u64);

impl Random {
    /// Marsaglia, Xorshift RNGs (2003).
    fn below(&mut self, below: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as u32 % below
    }
}

/// For each number, the version that was committed last; 0: none.
struct Known(Vec<AtomicU64>);

struct Client<'a> {
    session: Session,
    file: FileHandle,
    random: Random,
    known: &'a Known,
}

impl<'a> Client<'a> {
    fn new(engine: &Engine, known: &'a Known, seed: u64) -> Self {
        let mut session = engine.session();
        let file = session.open("file").unwrap();
        let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Self {
            session,
            file,
            random,
            known,
        }
    }

    /// Changes a record, or deletes it and inserts it again, in a transaction that may be undone.
    fn write(&mut self) -> Result<(), Status> {
        let number = self.random.below(NUMBERS);
        self.session.begin(TransactionKind::Concurrent)?;
        let get = Get::Equal(0, &number.to_le_bytes());
        let found = self
            .session
            .get(self.file, get, LockBias::MultipleWait)
            .map(checked);
        let (_, version) = found?;
        let next = version + 1;
        if self.random.below(4) == 0 {
            self.session.delete(self.file)?;
            self.session
                .insert(self.file, &record(number, next, false))?;
            self.session
                .get(self.file, get, LockBias::MultipleWait)
                .map(|_| ())?;
        }
        self.session
            .update(self.file, &record(number, next, false))?;
        if self.random.below(3) == 0 {
            return self.session.abort();
        }
        self.session
            .update(self.file, &record(number, next, true))?;
        self.session.end()?;
        // Others may have committed later versions since.
        self.known.0[number as usize].fetch_max(next, Release);
        Ok(())
    }

    fn write_some(&mut self, times: u32) {
        for _ in 0..times {
            match self.write() {
                Ok(()) => {}
                Err(Status::Deadlock) => self.session.abort().unwrap(),
                Err(status) => panic!("{status}"),
            }
        }
    }

    fn read(&mut self) {
        let number = self.random.below(NUMBERS);
        let known = self.known.0[number as usize].load(Acquire);
        let value = number.to_le_bytes();
        let get = match self.random.below(3) {
            0 => Get::Equal(0, &value),
            1 => Get::AtLeast(0, &value),
            _ => Get::AtMost(0, &value),
        };
        let found = self.session.get(self.file, get, LockBias::None);
        let (found, version) = checked(found.unwrap());
        assert_eq!(found, number);
        assert!(version >= known, "{number}: {version}, after {known}");
    }

    /// Reads some records in order, in one direction.
    fn scan(&mut self) {
        let mut number = self.random.below(NUMBERS);
        let is_up = self.random.below(2) == 0;
        let value = number.to_le_bytes();
        let mut get = Get::Equal(0, &value);
        loop {
            match self.session.get(self.file, get, LockBias::None) {
                // A record that was deleted and inserted again may follow itself.
                Ok(record) if get != Get::Equal(0, &value) => {
                    let (found, _) = checked(record);
                    let step = if is_up { 1 } else { u32::MAX };
                    assert!(found == number || found == number.wrapping_add(step));
                    number = found;
                }
                Ok(record) => assert_eq!(checked(record).0, number),
                Err(status) => {
                    assert_eq!(status, Status::EndOfFile);
                    assert_eq!(number, if is_up { NUMBERS - 1 } else { 0 });
                    return;
                }
            }
            if number.is_multiple_of(16) {
                return;
            }
            get = if is_up { Get::Next } else { Get::Previous };
        }
    }
}

fn engine(folder: &std::path::Path, options: EngineOptions) -> Engine {
    let (engine, _) = Engine::open(folder, options).unwrap();
    let definition = FileDefinition {
        record_bytes: RECORD_BYTES as u16,
        keys: vec![
            Key::unique(0, 4, SegmentKind::Unsigned),
            // Its entries move with each change.
            Key::unique(4, 12, SegmentKind::Bytes).with_duplicates(),
        ],
    };
    engine.create_file("file", &definition).unwrap();
    let mut session = engine.session();
    let file = session.open("file").unwrap();
    for number in 0..NUMBERS {
        session.insert(file, &record(number, 1, true)).unwrap();
    }
    engine
}

fn read_while_others_write(options: EngineOptions, rounds: u32) {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path(), options);
    let known = Known((0..NUMBERS).map(|_| AtomicU64::new(1)).collect());
    std::thread::scope(|scope| {
        for seed in 1..=2 {
            let mut writer = Client::new(&engine, &known, seed);
            scope.spawn(move || writer.write_some(rounds));
            let mut reader = Client::new(&engine, &known, 100 + seed);
            scope.spawn(move || {
                for round in 0..8 * rounds {
                    if round % 8 == 0 {
                        reader.scan();
                    }
                    reader.read();
                }
            });
        }
    });
    engine.verify().unwrap();
}

#[test]
fn what_is_read_without_locks_is_committed_and_whole() {
    for latching in LATCHINGS {
        let rounds = if latching == Latching::Record {
            6000
        } else {
            300
        };
        read_while_others_write(options(latching, Durability::None), rounds);
    }
}

#[test]
fn pages_that_are_evicted_meanwhile_are_not_confused() {
    let options = EngineOptions {
        cache_pages: 64,
        ..options(Latching::Record, Durability::None)
    };
    read_while_others_write(options, 1500);
}

#[test]
fn a_record_that_is_changed_by_a_transaction_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path(), options(Latching::Record, Durability::None));
    let known = Known(Vec::new());
    let (mut writer, mut reader) = (
        Client::new(&engine, &known, 1),
        Client::new(&engine, &known, 2),
    );
    reader
        .session
        .set_waiting(concurve_records::Waiting::Refuses);
    for (kind, is_exclusive) in [
        (TransactionKind::Concurrent, false),
        (TransactionKind::Exclusive, true),
    ] {
        writer.session.begin(kind).unwrap();
        let value = 7_u32.to_le_bytes();
        let get = Get::Equal(0, &value);
        let bias = LockBias::MultipleWait;
        writer.session.get(writer.file, get, bias).unwrap();
        let read = |reader: &mut Client, number: u32| {
            let value = number.to_le_bytes();
            let get = Get::Equal(0, &value);
            let found = reader.session.get(reader.file, get, LockBias::None);
            found.map(checked)
        };
        let refused = match is_exclusive {
            true => Status::FileInUse,
            false => Status::RecordInUse,
        };
        assert_eq!(read(&mut reader, 7), Err(refused));
        let changed = record(7, 2, true);
        writer.session.update(writer.file, &changed).unwrap();
        assert_eq!(read(&mut reader, 7), Err(refused));
        match is_exclusive {
            true => assert_eq!(read(&mut reader, 8), Err(refused)),
            false => assert_eq!(read(&mut reader, 8), Ok((8, 1))),
        }
        writer.session.abort().unwrap();
        assert_eq!(read(&mut reader, 7), Ok((7, 1)));
    }
}
