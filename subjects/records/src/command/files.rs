//! Commands about files as a whole.

use std::ops::RangeInclusive;

use crate::command::client::Client;
use crate::command::statement::{NUMBER_BYTES, Refusal};
use crate::definition::FileDefinition;
use crate::error::Fault;
use crate::session::{FileHandle, TransactionKind};
use crate::status::Status;

impl Client {
    pub(super) fn fill(
        &mut self,
        file: FileHandle,
        numbers: RangeInclusive<u64>,
        rest: &[u8],
    ) -> Result<(), Status> {
        if !std::mem::take(&mut self.is_unfinished) {
            let records = numbers
                .end()
                .saturating_sub(*numbers.start())
                .saturating_add(1);
            self.session.check_room(file, records)?;
            self.session.begin(TransactionKind::Exclusive)?;
        }
        for number in numbers {
            let mut record = format!("{number:0NUMBER_BYTES$}").into_bytes();
            record.extend_from_slice(rest);
            match self.session.insert(file, &record) {
                Ok(()) => {}
                // Only the first insert can wait: it locks the file.
                Err(Status::Waiting) => {
                    self.is_unfinished = true;
                    return Err(Status::Waiting);
                }
                Err(status) => {
                    self.session.abort()?;
                    return Err(status);
                }
            }
        }
        self.session.end()
    }

    /// Drops files; returns how many.
    pub(super) fn drop_files(&mut self, name: &[u8]) -> Result<i64, Status> {
        let text = std::str::from_utf8(name).map_err(|_| Status::FileNotFound)?;
        let Some(prefix) = text.strip_suffix('*') else {
            self.session.drop_file(text)?;
            return Ok(1);
        };
        let names = self.session.files().into_iter();
        let names: Vec<String> = names.filter(|it| it.starts_with(prefix)).collect();
        for name in &names {
            self.session.drop_file(name)?;
        }
        Ok(names.len() as i64)
    }

    pub(super) fn create(
        &mut self,
        name: &[u8],
        definition: &FileDefinition,
    ) -> Result<(), Refusal> {
        let name = String::from_utf8_lossy(name);
        let created = self.session.create_file(&name, definition);
        created.map_err(|fault| match fault {
            Fault::Definition(text) => Refusal::Usage(text),
            fault => fault.status().into(),
        })
    }
}
