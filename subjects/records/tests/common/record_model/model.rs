//! The model: a list of records that is searched completely.

use std::collections::BTreeMap;

use concurve_records::{LockBias, Status};

use super::SESSIONS;
use super::client::Client;
use super::steps::{Read, Record, Step};

#[derive(Debug, Clone)]
struct Current {
    key: usize,
    value: u8,
    position: u64,
    /// `None` after it was deleted.
    record: Option<Record>,
}

#[derive(Debug, Default)]
pub struct ModelSession {
    pub transaction: bool,
    current: Option<Current>,
    /// Old contents for an undo, in order.
    undo: Vec<(u64, Option<Record>)>,
    pub may_keep_locks: bool,
}

#[derive(Debug, Default)]
pub struct Model {
    pub records: BTreeMap<u64, Record>,
    pub sessions: [ModelSession; SESSIONS],
}

impl Model {
    pub fn others_may_have_locks(&self, session: usize) -> bool {
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

    fn get(&mut self, session: usize, read: Read) -> Result<Record, Status> {
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
        let found = match read {
            Read::Equal(key, value) => first(key, &|it| it.0 == value),
            Read::AtLeast(key, value) => first(key, &|it| it.0 >= value),
            Read::Greater(key, value) => first(key, &|it| it.0 > value),
            Read::Less(key, value) => last(key, &|it| it.0 < value),
            Read::AtMost(key, value) => last(key, &|it| it.0 <= value),
            Read::First(key) => first(key, &|_| true),
            Read::Last(key) => last(key, &|_| true),
            Read::Next | Read::Previous => {
                let current = current.ok_or(Status::InvalidPosition)?;
                let from = (current.value, current.position);
                match read {
                    Read::Next => first(current.key, &|it| it > from),
                    _ => last(current.key, &|it| it < from),
                }
            }
        };
        let nothing = match read {
            Read::Equal(..) => Status::KeyNotFound,
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

    /// Ends a session: what it had not committed is undone.
    pub fn end_session(&mut self, session: usize) {
        if self.sessions[session].transaction {
            self.abort(session);
        }
        self.sessions[session] = ModelSession::default();
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

    /// Does a step; the result of the session. The position of a new record is that of `client`.
    pub fn step(
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
            Step::Checkpoint => {}
            Step::Insert(record) => {
                if self.has_value(0, record[0]) {
                    return Err(Status::DuplicateKey);
                }
                let position = client.position(*record);
                self.put(session, position, Some(*record));
            }
            Step::Update(record) => self.update(session, *record)?,
            Step::Delete => self.delete(session)?,
            Step::Get(read, bias) => {
                own.may_keep_locks |= *bias != LockBias::None;
                return self.get(session, *read).map(Some);
            }
        }
        Ok(None)
    }
}
