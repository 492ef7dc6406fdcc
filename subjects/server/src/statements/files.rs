//! How plans read and change files, in a session of the record engine.

use std::ops::RangeInclusive;

use concurve_records::{FileHandle, Get, LockBias, Session, Status, TransactionKind};
use concurve_statements::{FileId, Files, Value};

use super::catalogue::Catalogue;
use super::layout::{field, key, record, set_field};
use super::refusal::Refusal;

/// The state of a session about files, between statements.
#[derive(Debug, Default)]
pub struct Opened {
    /// By the catalogue's number.
    handles: Vec<Option<FileHandle>>,
    /// The progress of a statement that waits for a lock. It is executed again when the lock is
    /// free.
    midway: Option<Midway>,
    /// The record that is being changed.
    scratch: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum Midway {
    /// The record was found and locked.
    Found,
    /// So many records were read, with this sum of a field.
    Scan { count: Value, sum: Value },
    /// The transaction that fills a file has begun.
    Filling,
}

/// The files, for the statements of a session.
pub struct RecordFiles<'a> {
    pub catalogue: &'a Catalogue,
    pub session: &'a mut Session,
    pub opened: &'a mut Opened,
}

impl Files for RecordFiles<'_> {
    type Error = Refusal;

    fn get(
        &mut self,
        file: FileId,
        number: usize,
        at: Value,
        for_update: bool,
    ) -> Result<Option<Value>, Refusal> {
        let file = self.handle(file)?;
        let bias = match for_update {
            true => LockBias::SingleWait,
            false => LockBias::None,
        };
        let found = match self.session.get(file, Get::Equal(0, &key(at)), bias) {
            Ok(record) => Some(field(record, number)),
            Err(Status::KeyNotFound) => None,
            Err(status) => return Err(status.into()),
        };
        if for_update {
            // A transaction keeps it; outside of one a lock does not outlive its statement.
            self.session.unlock(file)?;
        }
        Ok(found)
    }

    fn add(
        &mut self,
        file: FileId,
        number: usize,
        at: Value,
        delta: Value,
    ) -> Result<Option<Value>, Refusal> {
        let file = self.handle(file)?;
        if !self.lock(file, at)? {
            return Ok(None);
        }
        let before = field(&self.opened.scratch, number);
        let Some(after) = before.checked_add(delta) else {
            return Err(self.leave(file, Refusal::Overflow(before, delta)));
        };
        set_field(&mut self.opened.scratch, number, after);
        let updated = self.session.update(file, &self.opened.scratch);
        self.locked(file, updated)?;
        Ok(Some(after))
    }

    fn insert(&mut self, file: FileId, values: &[Value]) -> Result<bool, Refusal> {
        let record = record(values, self.catalogue.file(file).record_bytes);
        let file = self.handle(file)?;
        match self.session.insert(file, &record) {
            Ok(()) => Ok(true),
            Err(Status::DuplicateKey) => Ok(false),
            Err(status) => Err(status.into()),
        }
    }

    fn delete(&mut self, file: FileId, at: Value) -> Result<bool, Refusal> {
        let file = self.handle(file)?;
        if !self.lock(file, at)? {
            return Ok(false);
        }
        let deleted = self.session.delete(file);
        self.locked(file, deleted)?;
        Ok(true)
    }

    fn count(&mut self, file: FileId, from: Value, to: Value) -> Result<Value, Refusal> {
        Ok(self.scan(file, 0, from, to, |_, _| Ok(0))?.0)
    }

    fn sum(
        &mut self,
        file: FileId,
        number: usize,
        from: Value,
        to: Value,
    ) -> Result<Value, Refusal> {
        let add = |sum: Value, value| sum.checked_add(value).ok_or(Refusal::Overflow(sum, value));
        Ok(self.scan(file, number, from, to, add)?.1)
    }
}

impl RecordFiles<'_> {
    /// Inserts records with these keys and the same other fields, all of them or none.
    ///
    /// # Errors
    /// Whatever the record engine refuses: a record exists, a transaction is open …
    pub fn fill(
        &mut self,
        file: FileId,
        keys: RangeInclusive<Value>,
        rest: &[Value],
    ) -> Result<(), Refusal> {
        let values = [&[*keys.start()], rest].concat();
        let mut record = record(&values, self.catalogue.file(file).record_bytes);
        let file = self.handle(file)?;
        if self.opened.midway.take().is_none() {
            let records = match keys.is_empty() {
                true => 0,
                false => keys.end().abs_diff(*keys.start()).saturating_add(1),
            };
            self.session.check_room(file, records)?;
            self.session.begin(TransactionKind::Exclusive)?;
        }
        for number in keys {
            set_field(&mut record, 0, number);
            match self.session.insert(file, &record) {
                Ok(()) => {}
                // Only the first insert can wait: it locks the file.
                Err(Status::Waiting) => {
                    self.opened.midway = Some(Midway::Filling);
                    return Err(Status::Waiting.into());
                }
                Err(status) => {
                    self.session.abort()?;
                    return Err(status.into());
                }
            }
        }
        Ok(self.session.end()?)
    }

    fn handle(&mut self, file: FileId) -> Result<FileHandle, Refusal> {
        let at = file.0 as usize;
        if let Some(Some(handle)) = self.opened.handles.get(at) {
            return Ok(*handle);
        }
        let handle = self.session.open(&self.catalogue.file(file).name)?;
        let handles = &mut self.opened.handles;
        handles.resize(handles.len().max(at + 1), None);
        handles[at] = Some(handle);
        Ok(handle)
    }

    /// Finds and locks a record that will be changed, and copies it; false if there is none.
    fn lock(&mut self, file: FileHandle, at: Value) -> Result<bool, Refusal> {
        if let Some(Midway::Found) = self.opened.midway {
            return Ok(true);
        }
        let found = self
            .session
            .get(file, Get::Equal(0, &key(at)), LockBias::SingleWait);
        match found {
            Ok(record) => {
                self.opened.scratch.clear();
                self.opened.scratch.extend_from_slice(record);
                Ok(true)
            }
            Err(Status::KeyNotFound) => Ok(false),
            Err(status) => Err(status.into()),
        }
    }

    /// Handles the result of a change to a locked record.
    fn locked(&mut self, file: FileHandle, done: Result<(), Status>) -> Result<(), Refusal> {
        let waits = done == Err(Status::Waiting);
        self.opened.midway = waits.then_some(Midway::Found);
        match done {
            Ok(()) => Ok(()),
            Err(Status::Waiting) => Err(Status::Waiting.into()),
            Err(status) => Err(self.leave(file, status.into())),
        }
    }

    /// Releases the lock on a record that will not be changed; a transaction keeps it.
    fn leave(&mut self, file: FileHandle, why: Refusal) -> Refusal {
        match self.session.unlock(file) {
            Ok(()) => why,
            Err(status) => status.into(),
        }
    }

    /// Counts the records with keys from one to another, and folds one of their fields with `add`.
    fn scan(
        &mut self,
        file: FileId,
        number: usize,
        from: Value,
        to: Value,
        add: impl Fn(Value, Value) -> Result<Value, Refusal>,
    ) -> Result<(Value, Value), Refusal> {
        let file = self.handle(file)?;
        let (mut count, mut sum) = match self.opened.midway.take() {
            Some(Midway::Scan { count, sum }) => (count, sum),
            _ => (0, 0),
        };
        let first = key(from);
        loop {
            let next = match count {
                0 => Get::AtLeast(0, &first),
                _ => Get::Next,
            };
            let record = match self.session.get(file, next, LockBias::None) {
                Ok(record) => record,
                Err(Status::EndOfFile) => return Ok((count, sum)),
                Err(status) => {
                    let waits = status == Status::Waiting;
                    self.opened.midway = waits.then_some(Midway::Scan { count, sum });
                    return Err(status.into());
                }
            };
            if field(record, 0) > to {
                return Ok((count, sum));
            }
            sum = add(sum, field(record, number))?;
            count += 1;
        }
    }
}
