//! A session: at most one transaction, and the record that was read last.

use concurve_records::Status;
use concurve_records::command::Refusal;
use heed::{PutFlags, RwTxn};

use super::fault::Fault;
use super::statement::{Operation, Prepared};
use super::store::{File, Store};
use crate::workload::Answer;

pub struct Session<'a> {
    store: &'a Store,
    transaction: Option<Open<'a>>,
    /// Key of the record that was read last.
    current: Vec<u8>,
}

struct Open<'a> {
    writing: RwTxn<'a>,
    /// It was begun by BEGIN, and not by a read that locks.
    is_asked_for: bool,
}

impl<'a> Session<'a> {
    pub fn new(store: &'a Store) -> Self {
        Self {
            store,
            transaction: None,
            current: Vec::new(),
        }
    }

    /// Does what a statement says.
    pub fn execute(&mut self, prepared: &Prepared) -> Result<Answer, Fault> {
        let file = || prepared.file.as_ref().expect("it was found when prepared");
        match prepared.operation {
            Operation::Begin if self.transaction.is_some() => {
                return Err(Status::TransactionActive.into());
            }
            Operation::Begin => self.begin(true)?,
            Operation::End => self.commit()?,
            Operation::Abort => self.abort(),
            Operation::Get {
                key, locks, field, ..
            } => {
                let key = prepared.word(key);
                if locks && self.transaction.is_none() {
                    self.begin(false)?;
                }
                let number = |record: &[u8]| match field {
                    None => Ok(None),
                    Some(field) => field.number(record).map(Some),
                };
                self.current.clear();
                self.current.extend_from_slice(key);
                return Ok(match self.get(file(), key, number)? {
                    Some(number) => Answer::Done(number),
                    None => Answer::Nothing,
                });
            }
            Operation::Insert { record, .. } => {
                let (file, record) = (file(), prepared.word(record));
                let once = match file.duplicates {
                    true => PutFlags::NO_DUP_DATA,
                    false => PutFlags::NO_OVERWRITE,
                };
                self.put(file, once, record)?;
            }
            Operation::Update { record, .. } => {
                let (file, record) = (file(), prepared.word(record));
                if file.key(record)? != self.current {
                    return Err(Status::InvalidPosition.into());
                }
                self.put(file, PutFlags::empty(), record)?;
            }
        }
        Ok(Answer::Done(None))
    }

    fn begin(&mut self, is_asked_for: bool) -> Result<(), Fault> {
        self.transaction = Some(Open {
            writing: self.store.env().write_txn()?,
            is_asked_for,
        });
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Fault> {
        let open = self.transaction.take().ok_or(Status::NoTransaction)?;
        Ok(open.writing.commit()?)
    }

    /// Ends the transaction, if there is one, as if it had not been.
    pub fn abort(&mut self) {
        if let Some(open) = self.transaction.take() {
            open.writing.abort();
        }
    }

    fn get<T>(
        &self,
        file: &File,
        key: &[u8],
        seen: impl FnOnce(&[u8]) -> Result<T, Refusal>,
    ) -> Result<Option<T>, Fault> {
        Ok(match &self.transaction {
            Some(open) => file.database.get(&open.writing, key)?.map(seen),
            None => {
                let reading = self.store.env().read_txn()?;
                file.database.get(&reading, key)?.map(seen)
            }
        }
        .transpose()?)
    }

    /// Writes a record, in a transaction of its own if none was begun by BEGIN.
    fn put(&mut self, file: &File, flags: PutFlags, record: &[u8]) -> Result<(), Fault> {
        let key = file.key(record)?;
        if self.transaction.is_none() {
            self.begin(false)?;
        }
        let open = self.transaction.as_mut().expect("it was begun");
        file.database
            .put_with_flags(&mut open.writing, flags, key, record)?;
        match open.is_asked_for {
            true => Ok(()),
            false => self.commit(),
        }
    }
}
