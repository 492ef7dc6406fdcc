//! A small store with something of everything that a folder can hold: several files, one of them
//! without keys, one dropped; trees of two levels; several files of the log, one of them used
//! before; changes after the last checkpoint; a transaction that is not committed.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::sync::Arc;

use concurve_records::storage::Storage;
use concurve_records::{
    Durability, Engine, EngineOptions, Fault, FileDefinition, Get, Key, Latching, LockBias,
    SegmentKind, Session, Status, TransactionKind,
};

/// The records of each file that were acknowledged; of a file without keys only their number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Truth {
    pub records: BTreeMap<String, BTreeMap<u32, Vec<u8>>>,
    pub plain: i64,
}

const KEY_BYTES: u16 = 200;
const RECORD_BYTES: u16 = 260;

pub fn options() -> EngineOptions {
    EngineOptions {
        latching: Latching::Record,
        durability: Durability::Group,
        cache_pages: 64,
        checkpoint_bytes: 1 << 18,
        checkpoint_stretch: 1,
    }
}

fn keyed() -> FileDefinition {
    FileDefinition {
        record_bytes: RECORD_BYTES,
        keys: vec![
            Key::unique(0, KEY_BYTES, SegmentKind::Bytes),
            Key::unique(KEY_BYTES, 4, SegmentKind::Unsigned).with_duplicates(),
        ],
    }
}

fn record(number: u32, version: u32) -> Vec<u8> {
    let mut record = format!("{number:0200}").into_bytes();
    record.extend((number / 3).to_le_bytes());
    record.extend(version.to_le_bytes());
    record.resize(usize::from(RECORD_BYTES), version as u8);
    record
}

fn key(number: u32) -> Vec<u8> {
    format!("{number:0200}").into_bytes()
}

/// A client that remembers what was acknowledged.
struct Writer {
    session: Session,
    truth: Truth,
}

impl Writer {
    fn insert(&mut self, file: &str, numbers: std::ops::Range<u32>) {
        let handle = self.session.open(file).unwrap();
        for number in numbers {
            let record = record(number, 1);
            self.session.insert(handle, &record).unwrap();
            let records = self.truth.records.entry(file.to_owned()).or_default();
            records.insert(number, record);
        }
    }

    fn update(&mut self, file: &str, number: u32, version: u32) {
        let handle = self.session.open(file).unwrap();
        let get = key(number);
        self.session
            .get(handle, Get::Equal(0, &get), LockBias::SingleWait)
            .unwrap();
        let record = record(number, version);
        self.session.update(handle, &record).unwrap();
        let records = self.truth.records.get_mut(file).unwrap();
        records.insert(number, record);
    }

    fn delete(&mut self, file: &str, number: u32) {
        let handle = self.session.open(file).unwrap();
        let get = key(number);
        self.session
            .get(handle, Get::Equal(0, &get), LockBias::SingleWait)
            .unwrap();
        self.session.delete(handle).unwrap();
        self.truth.records.get_mut(file).unwrap().remove(&number);
    }

    fn plain(&mut self, many: i64) {
        let handle = self.session.open("plain").unwrap();
        for _ in 0..many {
            self.session.insert(handle, &[9; 500]).unwrap();
        }
        self.truth.plain += many;
    }
}

/// Makes the store, and leaves it as a kill does. `look` is called once before the last changes.
pub fn make(storage: &Arc<dyn Storage>, look: impl FnOnce()) -> Truth {
    let open = || Engine::open_shared_in(Arc::clone(storage), options());
    let (engine, _) = open().unwrap();
    for name in ["items", "dropped", "others"] {
        engine.create_file(name, &keyed()).unwrap();
    }
    let plain = FileDefinition {
        record_bytes: 500,
        keys: Vec::new(),
    };
    engine.create_file("plain", &plain).unwrap();
    let mut writer = Writer {
        session: engine.session(),
        truth: Truth::default(),
    };
    writer.insert("items", 0..120);
    writer.insert("others", 0..20);
    writer.insert("dropped", 0..10);
    writer.plain(30);
    let Writer { session, truth } = writer;
    drop(session);
    engine.close().unwrap();
    // The files of the log are used again.
    let (engine, _) = open().unwrap();
    let mut writer = Writer {
        session: engine.session(),
        truth,
    };
    writer.insert("items", 120..160);
    writer.session.drop_file("dropped").unwrap();
    writer.truth.records.remove("dropped");
    engine.checkpoint().unwrap();
    writer.insert("items", 160..200);
    engine.checkpoint().unwrap();
    look();
    writer.insert("items", 200..260);
    for number in 0..40 {
        writer.update("items", number * 5, 2);
        writer.delete("items", number * 5 + 1);
    }
    writer.insert("others", 20..30);
    writer.plain(20);
    let mut open = engine.session();
    let items = open.open("items").unwrap();
    open.begin(TransactionKind::Concurrent).unwrap();
    open.insert(items, &record(100_000, 1)).unwrap();
    writer.insert("others", 30..33);
    std::mem::forget(open);
    writer.truth
}

/// Opens a store, checks it, and reads all of it.
pub fn read(storage: Arc<dyn Storage>) -> Result<Truth, Fault> {
    let (engine, _) = Engine::open_shared_in(storage, options())?;
    engine.verify()?;
    let mut truth = Truth::default();
    let mut session = engine.session();
    for (name, _) in engine.files() {
        let stopped = |status: Status| engine.failure().unwrap_or_else(|| status.to_string());
        let file = session.open(&name).unwrap();
        if name == "plain" {
            truth.plain = i64::from(count(&session, file).map_err(stopped).unwrap());
            continue;
        }
        let records = truth.records.entry(name).or_default();
        let mut next = Get::First(0);
        loop {
            match session.get(file, next, LockBias::None) {
                Ok(record) => {
                    let number = std::str::from_utf8(&record[..200]).unwrap();
                    records.insert(number.parse().unwrap(), record.to_vec());
                }
                Err(Status::EndOfFile) => break,
                Err(status) => panic!("{}", stopped(status)),
            }
            next = Get::Next;
        }
    }
    Ok(truth)
}

fn count(session: &Session, file: concurve_records::FileHandle) -> Result<u32, Status> {
    let mut many = 0;
    session.each_record(file, |_| {
        many += 1;
        Ok::<(), Status>(())
    })?;
    Ok(many)
}
