//! A session: at most one transaction, and the key of the record that was read last.

use concurve_records::Status;
use concurve_records::command::Refusal;
use heed::{PutFlags, RwTxn};

use super::error::LmdbError;
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
    /// It was begun by BEGIN, and not by a read with a lock.
    is_explicit: bool,
}

impl<'a> Session<'a> {
    pub fn new(store: &'a Store) -> Self {
        Self {
            store,
            transaction: None,
            current: Vec::new(),
        }
    }

    /// Executes a statement.
    pub fn execute(&mut self, prepared: &Prepared) -> Result<Answer, LmdbError> {
        let file = || prepared.file.as_ref().expect("it was set when prepared");
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
                let key = prepared.token(key);
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
                let (file, record) = (file(), prepared.token(record));
                let once = match file.duplicates {
                    true => PutFlags::NO_DUP_DATA,
                    false => PutFlags::NO_OVERWRITE,
                };
                self.put(file, once, record)?;
            }
            Operation::Update { record, .. } => {
                let (file, record) = (file(), prepared.token(record));
                if file.key(record)? != self.current {
                    return Err(Status::InvalidPosition.into());
                }
                self.put(file, PutFlags::empty(), record)?;
            }
        }
        Ok(Answer::Done(None))
    }

    fn begin(&mut self, is_explicit: bool) -> Result<(), LmdbError> {
        self.transaction = Some(Open {
            writing: self.store.env().write_txn()?,
            is_explicit,
        });
        Ok(())
    }

    fn commit(&mut self) -> Result<(), LmdbError> {
        let open = self.transaction.take().ok_or(Status::NoTransaction)?;
        Ok(open.writing.commit()?)
    }

    /// Rolls back the transaction, if there is one.
    pub fn abort(&mut self) {
        if let Some(open) = self.transaction.take() {
            open.writing.abort();
        }
    }

    fn get<T>(
        &self,
        file: &File,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> Result<T, Refusal>,
    ) -> Result<Option<T>, LmdbError> {
        Ok(match &self.transaction {
            Some(open) => file.database.get(&open.writing, key)?.map(read),
            None => {
                let reading = self.store.env().read_txn()?;
                file.database.get(&reading, key)?.map(read)
            }
        }
        .transpose()?)
    }

    /// Writes a record, in a transaction of its own if none was begun by BEGIN.
    fn put(&mut self, file: &File, flags: PutFlags, record: &[u8]) -> Result<(), LmdbError> {
        if self.transaction.is_none() {
            self.begin(false)?;
        }
        let open = self.transaction.as_mut().expect("it was begun");
        file.put(&mut open.writing, flags, record)?;
        match open.is_explicit {
            true => Ok(()),
            false => self.commit(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::lmdb::store::Mode;
    use crate::workload::{Statement, tokens};
    use concurve_records::command::{Command, Words};

    fn store(folder: &tempfile::TempDir) -> Store {
        let mode = Mode {
            syncs: false,
            writes_map: false,
        };
        let mut store = Store::open(folder.path(), mode).unwrap();
        for text in [
            "CREATE f 24 KEY 0:12:text",
            "CREATE h 24 KEY 12:12:text DUPLICATES",
        ] {
            let words: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
            let Command::Create { file, definition } = Command::parse(&words[..]).unwrap() else {
                panic!("it makes a file");
            };
            store.create(words.word(file), &definition).unwrap();
        }
        store
    }

    fn execute(session: &mut Session, text: &str) -> Result<Answer, String> {
        let statement = Statement::parse(text, &[]).unwrap();
        let prepared = Prepared::new(session.store, &tokens(&statement));
        let done = prepared.and_then(|it| session.execute(&it));
        done.map_err(|error| error.kind())
    }

    const FIRST: &str = "INSERT f 000000000001000000000040";

    #[test]
    fn a_transaction_is_kept_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let mut session = Session::new(&store);
        let balance = "GET EQUAL f 0 000000000001 FIELD 12 12";
        assert_eq!(execute(&mut session, FIRST), Ok(Answer::Done(None)));
        for (end, left) in [("ABORT", 40), ("END", 41)] {
            execute(&mut session, "BEGIN").unwrap();
            execute(&mut session, "GET EQUAL f 0 000000000001 SINGLE").unwrap();
            execute(&mut session, "UPDATE f 000000000001000000000041").unwrap();
            assert_eq!(execute(&mut session, balance), Ok(Answer::Done(Some(41))));
            execute(&mut session, end).unwrap();
            let found = execute(&mut session, balance);
            assert_eq!(found, Ok(Answer::Done(Some(left))));
        }
        assert_eq!(
            execute(&mut session, "END"),
            Err("NOTRANSACTION".to_owned())
        );
    }

    #[test]
    fn outside_of_a_transaction_a_locked_read_lasts_until_the_update() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let mut session = Session::new(&store);
        execute(&mut session, FIRST).unwrap();
        execute(&mut session, "GET EQUAL f 0 000000000001 SINGLE").unwrap();
        assert!(session.transaction.is_some());
        execute(&mut session, "UPDATE f 00000000000100000000-042").unwrap();
        assert!(session.transaction.is_none());
    }

    #[test]
    fn errors_have_a_short_kind() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let mut session = Session::new(&store);
        execute(&mut session, FIRST).unwrap();
        for (text, kind) in [
            (FIRST, "DUPLICATEKEY"),
            ("UPDATE f 000000000002000000000041", "INVALIDPOSITION"),
            ("INSERT f 1", "RECORDLENGTH"),
            ("INSERT g 1", "there is no file \"g\""),
            ("GET NEXT f", "\"GET NEXT f\" is not supported on LMDB"),
        ] {
            assert_eq!(execute(&mut session, text), Err(kind.to_owned()), "{text}");
            session.abort();
        }
        let missing = execute(&mut session, "GET EQUAL f 0 000000000002");
        assert_eq!(missing, Ok(Answer::Nothing));
    }

    #[test]
    fn records_with_the_same_key_are_all_kept() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder);
        let mut session = Session::new(&store);
        for number in 1..=3 {
            execute(&mut session, &format!("INSERT h {number:012}000000000007")).unwrap();
        }
        let again = execute(&mut session, "INSERT h 000000000003000000000007");
        assert_eq!(again, Err("DUPLICATEKEY".to_owned()));
        session.abort();
        let mut seen = Vec::new();
        let note = |record: &[u8]| {
            seen.push(record[11] - b'0');
            Ok(())
        };
        store.each(b"h", note).unwrap();
        assert_eq!(seen, [1, 2, 3]);
    }
}
