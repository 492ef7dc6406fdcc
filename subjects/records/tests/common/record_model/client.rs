//! A session of the engine that does the steps of the model.

use concurve_records::{
    Engine, FileDefinition, FileHandle, Get, Key, LockBias, SegmentKind, Session, Status, Waiting,
};

use super::steps::{Read, Record, Step};

/// Long records, so that files have several pages.
const RECORD_BYTES: usize = 700;

/// A session of the engine, with a second opening that does not move the position of the first.
pub struct Client {
    session: Session,
    file: FileHandle,
    probe: FileHandle,
}

impl Client {
    pub fn new(engine: &Engine) -> Self {
        let mut session = engine.session();
        session.set_waiting(Waiting::Refuses);
        Self {
            file: session.open("file").unwrap(),
            probe: session.open("file").unwrap(),
            session,
        }
    }

    pub fn get(&mut self, read: Read, bias: LockBias) -> Result<Record, Status> {
        let value;
        let get = match read {
            Read::Equal(key, it) => {
                value = [it];
                Get::Equal(key, &value)
            }
            Read::Greater(key, it) => {
                value = [it];
                Get::Greater(key, &value)
            }
            Read::AtLeast(key, it) => {
                value = [it];
                Get::AtLeast(key, &value)
            }
            Read::Less(key, it) => {
                value = [it];
                Get::Less(key, &value)
            }
            Read::AtMost(key, it) => {
                value = [it];
                Get::AtMost(key, &value)
            }
            Read::Next => Get::Next,
            Read::Previous => Get::Previous,
            Read::First(key) => Get::First(key),
            Read::Last(key) => Get::Last(key),
        };
        let record = self.session.get(self.file, get, bias)?;
        Ok(record[..3].try_into().unwrap())
    }

    pub fn step(&mut self, engine: &Engine, step: &Step) -> Result<Option<Record>, Status> {
        let (session, file) = (&mut self.session, self.file);
        match step {
            Step::Begin(kind) => session.begin(*kind)?,
            Step::End => session.end()?,
            Step::Abort => session.abort()?,
            Step::Unlock => session.unlock(file)?,
            Step::Insert(record) => session.insert(file, &whole(*record))?,
            Step::Update(record) => session.update(file, &whole(*record))?,
            Step::Delete => session.delete(file)?,
            Step::Checkpoint => engine.checkpoint().unwrap(),
            Step::Get(read, bias) => return self.get(*read, *bias).map(Some),
        }
        Ok(None)
    }

    /// The position of a record, which only the engine knows.
    pub fn position(&mut self, record: Record) -> u64 {
        let get = Get::Equal(0, &record[..1]);
        self.session.get(self.probe, get, LockBias::None).unwrap();
        self.session.position(self.probe).unwrap()
    }
}

fn whole(record: Record) -> [u8; RECORD_BYTES] {
    let mut whole = [9; RECORD_BYTES];
    whole[..3].copy_from_slice(&record);
    whole
}

/// A unique key, a key with duplicates, and other bytes.
pub fn definition() -> FileDefinition {
    FileDefinition {
        record_bytes: RECORD_BYTES as u16,
        keys: vec![
            Key::unique(0, 1, SegmentKind::Unsigned),
            Key::unique(1, 1, SegmentKind::Bytes).with_duplicates(),
        ],
    }
}
