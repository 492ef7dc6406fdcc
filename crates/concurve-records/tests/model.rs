//! The engine against a model that is obviously right: a list of records, looked through whole, with
//! several sessions in one thread that never wait. Where the engine says that something is in use,
//! another session must have locks, and nothing may have happened.

mod common;

use std::collections::BTreeMap;

use common::LATCHINGS;
use concurve_records::{
    Durability, Engine, FileDefinition, FileHandle, Get, Key, LockBias, SegmentKind, Session,
    Settings, Status, TransactionKind, Waiting,
};
use proptest::prelude::*;

const SESSIONS: usize = 3;
/// A unique key, a key with duplicates, and something else, in long records, so that files have
/// several pages.
const RECORD_BYTES: usize = 700;

type Record = [u8; 3];

#[derive(Debug, Clone)]
enum Step {
    Begin(TransactionKind),
    End,
    Abort,
    Unlock,
    Insert(Record),
    Update(Record),
    Delete,
    Get(Asked, LockBias),
}

#[derive(Debug, Clone, Copy)]
enum Asked {
    Equal(usize, u8),
    Next,
    Previous,
    Greater(usize, u8),
    AtLeast(usize, u8),
    Less(usize, u8),
    AtMost(usize, u8),
    First(usize),
    Last(usize),
}

#[derive(Debug, Clone)]
struct Current {
    key: usize,
    value: u8,
    position: u64,
    /// `None` after it was deleted.
    record: Option<Record>,
}

#[derive(Debug, Default)]
struct ModelSession {
    transaction: bool,
    current: Option<Current>,
    /// What to put back, in order.
    undo: Vec<(u64, Option<Record>)>,
    may_keep_locks: bool,
}

#[derive(Debug, Default)]
struct Model {
    records: BTreeMap<u64, Record>,
    sessions: [ModelSession; SESSIONS],
}

impl Model {
    fn others_may_have_locks(&self, session: usize) -> bool {
        let others = self.sessions.iter().enumerate();
        let mut others = others.filter(|(number, _)| *number != session);
        others.any(|(_, it)| it.transaction || it.may_keep_locks)
    }

    fn has_value(&self, key: usize, value: u8) -> bool {
        self.records.values().any(|it| it[key] == value)
    }

    fn put(&mut self, session: usize, position: u64, record: Option<Record>) {
        let before = match record {
            Some(record) => self.records.insert(position, record),
            None => self.records.remove(&position),
        };
        if self.sessions[session].transaction {
            self.sessions[session].undo.push((position, before));
        }
    }

    fn get(&mut self, session: usize, asked: Asked) -> Result<Record, Status> {
        let current = self.sessions[session].current.clone();
        let entries = |key: usize| {
            let entries = self.records.iter().map(|(at, it)| (it[key], *at));
            let mut entries: Vec<(u8, u64)> = entries.collect();
            entries.sort_unstable();
            entries
        };
        let first = |key: usize, holds: &dyn Fn((u8, u64)) -> bool| {
            let found = entries(key).into_iter().find(|it| holds(*it));
            found.map(|it| (key, it))
        };
        let last = |key: usize, holds: &dyn Fn((u8, u64)) -> bool| {
            let found = entries(key).into_iter().rev().find(|it| holds(*it));
            found.map(|it| (key, it))
        };
        let found = match asked {
            Asked::Equal(key, value) => first(key, &|it| it.0 == value),
            Asked::AtLeast(key, value) => first(key, &|it| it.0 >= value),
            Asked::Greater(key, value) => first(key, &|it| it.0 > value),
            Asked::Less(key, value) => last(key, &|it| it.0 < value),
            Asked::AtMost(key, value) => last(key, &|it| it.0 <= value),
            Asked::First(key) => first(key, &|_| true),
            Asked::Last(key) => last(key, &|_| true),
            Asked::Next | Asked::Previous => {
                let current = current.ok_or(Status::InvalidPosition)?;
                let from = (current.value, current.position);
                match asked {
                    Asked::Next => first(current.key, &|it| it > from),
                    _ => last(current.key, &|it| it < from),
                }
            }
        };
        let nothing = match asked {
            Asked::Equal(..) => Status::KeyNotFound,
            _ => Status::EndOfFile,
        };
        let (key, (value, position)) = found.ok_or(nothing)?;
        let record = self.records[&position];
        self.sessions[session].current = Some(Current {
            key,
            value,
            position,
            record: Some(record),
        });
        Ok(record)
    }

    fn current(&self, session: usize) -> Result<(Current, Record), Status> {
        let current = self.sessions[session].current.clone();
        let current = current.ok_or(Status::InvalidPosition)?;
        let record = current.record.ok_or(Status::InvalidPosition)?;
        if self.records.get(&current.position) != Some(&record) {
            return Err(Status::Conflict);
        }
        Ok((current, record))
    }

    fn update(&mut self, session: usize, new: Record) -> Result<(), Status> {
        let (mut current, old) = self.current(session)?;
        if old[0] != new[0] && self.has_value(0, new[0]) {
            return Err(Status::DuplicateKey);
        }
        self.put(session, current.position, Some(new));
        current.record = Some(new);
        current.value = new[current.key];
        self.sessions[session].current = Some(current);
        Ok(())
    }

    fn delete(&mut self, session: usize) -> Result<(), Status> {
        let (mut current, _) = self.current(session)?;
        self.put(session, current.position, None);
        current.record = None;
        self.sessions[session].current = Some(current);
        Ok(())
    }

    fn abort(&mut self, session: usize) {
        let session = &mut self.sessions[session];
        session.transaction = false;
        session.current = None;
        for (position, before) in std::mem::take(&mut session.undo).into_iter().rev() {
            match before {
                Some(record) => self.records.insert(position, record),
                None => self.records.remove(&position),
            };
        }
    }
}

/// A session of the engine, with a second opening that does not move the position of the first.
struct Client {
    session: Session,
    file: FileHandle,
    probe: FileHandle,
}

impl Client {
    fn new(engine: &Engine) -> Self {
        let mut session = engine.session();
        session.set_waiting(Waiting::Refuses);
        Self {
            file: session.open("file").unwrap(),
            probe: session.open("file").unwrap(),
            session,
        }
    }

    fn get(&mut self, asked: Asked, bias: LockBias) -> Result<Record, Status> {
        let value;
        let get = match asked {
            Asked::Equal(key, it) => {
                value = [it];
                Get::Equal(key, &value)
            }
            Asked::Greater(key, it) => {
                value = [it];
                Get::Greater(key, &value)
            }
            Asked::AtLeast(key, it) => {
                value = [it];
                Get::AtLeast(key, &value)
            }
            Asked::Less(key, it) => {
                value = [it];
                Get::Less(key, &value)
            }
            Asked::AtMost(key, it) => {
                value = [it];
                Get::AtMost(key, &value)
            }
            Asked::Next => Get::Next,
            Asked::Previous => Get::Previous,
            Asked::First(key) => Get::First(key),
            Asked::Last(key) => Get::Last(key),
        };
        let record = self.session.get(self.file, get, bias)?;
        Ok(record[..3].try_into().unwrap())
    }
}

fn whole(record: Record) -> [u8; RECORD_BYTES] {
    let mut whole = [9; RECORD_BYTES];
    whole[..3].copy_from_slice(&record);
    whole
}

fn definition() -> FileDefinition {
    FileDefinition {
        record_bytes: RECORD_BYTES as u16,
        keys: vec![
            Key::unique(0, 1, SegmentKind::Unsigned),
            Key::unique(1, 1, SegmentKind::Bytes).with_duplicates(),
        ],
    }
}

fn is_in_use(status: Status) -> bool {
    matches!(status, Status::RecordInUse | Status::FileInUse)
}

/// Does a step in both, and compares.
fn step(model: &mut Model, client: &mut Client, session: usize, step: &Step) {
    let done = client.step(step);
    if done.is_err_and(is_in_use) {
        assert!(model.others_may_have_locks(session), "in use by nobody");
        return;
    }
    let expected = model.step(client, session, step);
    assert_eq!(done, expected, "{step:?} of session {session}");
}

impl Client {
    fn step(&mut self, step: &Step) -> Result<Option<Record>, Status> {
        let (engine, file) = (&mut self.session, self.file);
        match step {
            Step::Begin(kind) => engine.begin(*kind)?,
            Step::End => engine.end()?,
            Step::Abort => engine.abort()?,
            Step::Unlock => engine.unlock(file)?,
            Step::Insert(record) => engine.insert(file, &whole(*record))?,
            Step::Update(record) => engine.update(file, &whole(*record))?,
            Step::Delete => engine.delete(file)?,
            Step::Get(asked, bias) => return self.get(*asked, *bias).map(Some),
        }
        Ok(None)
    }

    /// Where a record is; only the engine knows.
    fn position(&mut self, record: Record) -> u64 {
        let get = Get::Equal(0, &record[..1]);
        self.session.get(self.probe, get, LockBias::None).unwrap();
        self.session.position(self.probe).unwrap()
    }
}

impl Model {
    fn step(
        &mut self,
        client: &mut Client,
        session: usize,
        step: &Step,
    ) -> Result<Option<Record>, Status> {
        let own = &mut self.sessions[session];
        match step {
            Step::Begin(_) if own.transaction => return Err(Status::TransactionActive),
            Step::Begin(_) => own.transaction = true,
            Step::End | Step::Abort if !own.transaction => return Err(Status::NoTransaction),
            Step::End => {
                own.transaction = false;
                own.undo.clear();
            }
            Step::Abort => self.abort(session),
            Step::Unlock => own.may_keep_locks = false,
            Step::Insert(record) => {
                if self.has_value(0, record[0]) {
                    return Err(Status::DuplicateKey);
                }
                let position = client.position(*record);
                self.put(session, position, Some(*record));
            }
            Step::Update(record) => self.update(session, *record)?,
            Step::Delete => self.delete(session)?,
            Step::Get(asked, bias) => {
                own.may_keep_locks |= *bias != LockBias::None;
                return self.get(session, *asked).map(Some);
            }
        }
        Ok(None)
    }
}

fn compare(engine: &Engine, model: &Model) {
    engine.verify().unwrap();
    let mut client = Client::new(engine);
    for key in 0..2 {
        let mut entries: Vec<_> = model.records.iter().collect();
        entries.sort_by_key(|(position, record)| (record[key], **position));
        let mut asked = Asked::First(key);
        for (_, record) in entries {
            assert_eq!(client.get(asked, LockBias::None), Ok(*record));
            asked = Asked::Next;
        }
        assert_eq!(client.get(asked, LockBias::None), Err(Status::EndOfFile));
    }
}

fn value() -> impl Strategy<Value = u8> {
    0..24_u8
}

fn asked() -> impl Strategy<Value = Asked> {
    let key = || 0..2_usize;
    prop_oneof![
        4 => (key(), value()).prop_map(|(key, value)| Asked::Equal(key, value)),
        3 => Just(Asked::Next),
        2 => Just(Asked::Previous),
        1 => (key(), value()).prop_map(|(key, value)| Asked::Greater(key, value)),
        1 => (key(), value()).prop_map(|(key, value)| Asked::AtLeast(key, value)),
        1 => (key(), value()).prop_map(|(key, value)| Asked::Less(key, value)),
        1 => (key(), value()).prop_map(|(key, value)| Asked::AtMost(key, value)),
        1 => key().prop_map(Asked::First),
        1 => key().prop_map(Asked::Last),
    ]
}

fn bias() -> impl Strategy<Value = LockBias> {
    prop_oneof![
        6 => Just(LockBias::None),
        1 => Just(LockBias::SingleWait),
        1 => Just(LockBias::MultipleNoWait),
    ]
}

fn a_step() -> impl Strategy<Value = Step> {
    let record = || (value(), 0..5_u8, 0..3_u8).prop_map(|(a, b, c)| [a, b, c]);
    prop_oneof![
        4 => prop_oneof![
            5 => Just(TransactionKind::Concurrent),
            1 => Just(TransactionKind::Exclusive),
        ]
        .prop_map(Step::Begin),
        3 => Just(Step::End),
        2 => Just(Step::Abort),
        1 => Just(Step::Unlock),
        8 => record().prop_map(Step::Insert),
        5 => record().prop_map(Step::Update),
        3 => Just(Step::Delete),
        12 => (asked(), bias()).prop_map(|(asked, bias)| Step::Get(asked, bias)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn sessions_see_what_the_model_says(
        steps in proptest::collection::vec((0..SESSIONS, a_step()), 1..250),
        latching in proptest::sample::select(&LATCHINGS),
        restart: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            latching,
            durability: Durability::None,
            cache_pages: 64,
            checkpoint_bytes: 1 << 16,
        };
        let (engine, _) = Engine::open(folder.path(), settings.clone()).unwrap();
        engine.create_file("file", &definition()).unwrap();
        let mut model = Model::default();
        let mut clients: Vec<Client> = (0..SESSIONS).map(|_| Client::new(&engine)).collect();
        for (session, it) in &steps {
            step(&mut model, &mut clients[*session], *session, it);
        }
        for session in 0..SESSIONS {
            if model.sessions[session].transaction {
                model.abort(session);
            }
        }
        if restart {
            // What the sessions have not ended is undone by the next start.
            std::mem::forget(clients);
            drop(engine);
            let copy = tempfile::tempdir().unwrap();
            for entry in std::fs::read_dir(folder.path()).unwrap() {
                let entry = entry.unwrap();
                std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
            }
            let (engine, _) = Engine::open(copy.path(), settings).unwrap();
            compare(&engine, &model);
        } else {
            drop(clients);
            assert_eq!(engine.locks(), 0);
            compare(&engine, &model);
        }
    }
}
