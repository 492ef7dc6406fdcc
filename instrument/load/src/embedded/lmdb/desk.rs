//! LMDB's desk: the record language as far as init and verify speak it.

use std::fs;

use concurve_records::command::{Command, Groups, Sums, Words, differing};

use super::fault::Fault;
use super::session::Session;
use super::statement::Prepared;
use super::store::{Mode, Store};
use super::{Address, EngineError};
use crate::desk::{Desk, DeskError, Desks};
use crate::error::Error;
use crate::stop::Stop;
use crate::workload::words::words;
use crate::workload::{Answer, Statement};

impl Desks for Address {
    fn open(&self, create: bool, _stop: &Stop) -> Result<Box<dyn Desk>, Error> {
        if create {
            fs::create_dir_all(&self.folder).map_err(|error| EngineError {
                place: self.place(),
                why: error.to_string(),
                remedy: "name a folder that can be made",
            })?;
        }
        // What is made is on the disk when the desk is left; a map that is written would make the
        // file as long as it can ever be.
        let mode = Mode {
            syncs: false,
            writes_map: false,
        };
        let store = match create {
            true => self.create(mode)?,
            false => Address::open(self, mode)?,
        };
        Ok(Box::new(LmdbDesk(store)))
    }
}

struct LmdbDesk(Store);

impl Desk for LmdbDesk {
    fn ask(&mut self, statement: &str) -> Result<Option<i64>, DeskError> {
        let answered = self.answer(statement);
        answered.map_err(|fault| DeskError::refused(statement, fault.to_string()))
    }
}

impl Drop for LmdbDesk {
    fn drop(&mut self) {
        // Who needs it on the disk will be told by the next one that writes.
        let _ = self.0.env().force_sync();
    }
}

impl LmdbDesk {
    fn answer(&mut self, statement: &str) -> Result<Option<i64>, Fault> {
        let store = &mut self.0;
        let words: Vec<&[u8]> = statement.split(' ').map(str::as_bytes).collect();
        let words = &words[..];
        Ok(match Command::parse(words)? {
            Command::Create { file, definition } => {
                store.create(words.word(file), &definition)?;
                None
            }
            Command::Drop { file } => Some(drop_files(store, words.word(file))?),
            Command::Files { prefix } => {
                let names = store.names(words.word(prefix));
                Some(names.len() as i64)
            }
            Command::Fill {
                file,
                first,
                last,
                rest,
            } => {
                store.fill(words.word(file), first..=last, words.word(rest))?;
                None
            }
            Command::Count { file } => {
                let mut count = 0;
                store.each(words.word(file), |_| {
                    count += 1;
                    Ok(())
                })?;
                Some(count)
            }
            Command::Sum { file, field } => {
                let mut sum = 0;
                store.each(words.word(file), |record| {
                    sum += field.number(record)?;
                    Ok(())
                })?;
                Some(sum)
            }
            Command::Compare([one, other]) => {
                let groups = |sums: Sums| groups(store, words.word(sums.file), sums);
                Some(differing(&groups(one)?, &groups(other)?))
            }
            _ => number(store, statement)?,
        })
    }
}

/// Does a statement as a session would.
fn number(store: &Store, statement: &str) -> Result<Option<i64>, Fault> {
    let parsed = Statement::parse(statement, &[]);
    let parsed = parsed.map_err(|_| Fault::NotHere(statement.to_owned()))?;
    let prepared = Prepared::new(store, &words(&parsed))?;
    match Session::new(store).execute(&prepared)? {
        Answer::Done(number) => Ok(number),
        Answer::Nothing | Answer::Error(_) => Ok(None),
    }
}

/// Gives up a file; or, with `*` at the end, all whose names begin so.
fn drop_files(store: &mut Store, name: &[u8]) -> Result<i64, Fault> {
    let names = match name.strip_suffix(b"*") {
        None => vec![String::from_utf8_lossy(name).into_owned()],
        Some(prefix) => store.names(prefix),
    };
    for name in &names {
        store.drop_file(name.as_bytes())?;
    }
    Ok(names.len() as i64)
}

fn groups(store: &Store, name: &[u8], sums: Sums) -> Result<Groups, Fault> {
    let mut groups = Groups::default();
    store.each(name, |record| Ok(sums.add(record, &mut groups)?))?;
    Ok(groups)
}
