//! Administrative connections to LMDB: the part of the record language that makes and verifies data.

use concurve_records::command::{Command, Groups, Sums, Words, differing};

use super::error::LmdbError;
use super::session::Session;
use super::statement::Prepared;
use super::store::Store;
use crate::admin::{AdminConnection, AdminError};
use crate::workload::{Answer, Statement, tokens};

pub struct LmdbAdmin(pub Store);

impl AdminConnection for LmdbAdmin {
    fn execute(&mut self, statement: &str) -> Result<Option<i64>, AdminError> {
        let answered = self.answer(statement);
        answered.map_err(|error| AdminError::refused(statement, error.to_string()))
    }
}

impl Drop for LmdbAdmin {
    fn drop(&mut self) {
        // If this fails, the next commit that syncs reports the error.
        let _ = self.0.env().force_sync();
    }
}

impl LmdbAdmin {
    fn answer(&mut self, statement: &str) -> Result<Option<i64>, LmdbError> {
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

/// Executes a statement in a session.
fn number(store: &Store, statement: &str) -> Result<Option<i64>, LmdbError> {
    let parsed = Statement::parse(statement, &[]);
    let parsed = parsed.map_err(|_| LmdbError::Unsupported(statement.to_owned()))?;
    let prepared = Prepared::new(store, &tokens(&parsed))?;
    match Session::new(store).execute(&prepared)? {
        Answer::Done(number) => Ok(number),
        Answer::Nothing | Answer::Error(_) => Ok(None),
    }
}

/// Drops a file; with `*` at the end of the name, all files whose names begin so.
fn drop_files(store: &mut Store, name: &[u8]) -> Result<i64, LmdbError> {
    let names = match name.strip_suffix(b"*") {
        None => vec![String::from_utf8_lossy(name).into_owned()],
        Some(prefix) => store.names(prefix),
    };
    for name in &names {
        store.drop_file(name.as_bytes())?;
    }
    Ok(names.len() as i64)
}

fn groups(store: &Store, name: &[u8], sums: Sums) -> Result<Groups<Vec<u8>>, LmdbError> {
    let mut groups = Groups::default();
    store.each(name, |record| Ok(sums.add(record, &mut groups)?))?;
    Ok(groups)
}
