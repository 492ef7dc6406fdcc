//! A simple implementation of files in memory.

use std::collections::BTreeMap;

use concurve_statements::{Catalogue, FileColumns, FileId, Files, StatementError, Value};

pub const FIELDS: usize = 2;

/// A catalogue of the files `accounts` and `tellers`, of an id and a balance.
pub struct Schema(pub u64);

impl Catalogue for Schema {
    fn file(&self, name: &str) -> Option<FileColumns> {
        let number = ["accounts", "tellers"].iter().position(|it| *it == name)?;
        Some(FileColumns {
            file: FileId(number as u32),
            fields: vec!["id".to_owned(), "balance".to_owned()],
        })
    }

    fn version(&self) -> u64 {
        self.0
    }
}

/// Records by file and key; the key is the first field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory(pub BTreeMap<(u32, Value), [Value; FIELDS]>);

impl Files for Memory {
    type Error = StatementError;

    fn get(
        &mut self,
        file: FileId,
        field: usize,
        key: Value,
        _for_update: bool,
    ) -> Result<Option<Value>, StatementError> {
        Ok(self.0.get(&(file.0, key)).map(|it| it[field]))
    }

    fn add(
        &mut self,
        file: FileId,
        field: usize,
        key: Value,
        delta: Value,
    ) -> Result<Option<Value>, StatementError> {
        let record = self.0.get_mut(&(file.0, key));
        Ok(record.map(|it| {
            it[field] = it[field].wrapping_add(delta);
            it[field]
        }))
    }

    fn insert(&mut self, file: FileId, values: &[Value]) -> Result<bool, StatementError> {
        let record: [Value; FIELDS] = values.try_into().expect("as many as there are fields");
        let key = (file.0, record[0]);
        let is_new = !self.0.contains_key(&key);
        self.0.entry(key).or_insert(record);
        Ok(is_new)
    }

    fn delete(&mut self, file: FileId, key: Value) -> Result<bool, StatementError> {
        Ok(self.0.remove(&(file.0, key)).is_some())
    }

    fn count(&mut self, file: FileId, from: Value, to: Value) -> Result<Value, StatementError> {
        Ok(self.between(file, from, to).count() as Value)
    }

    fn sum(
        &mut self,
        file: FileId,
        field: usize,
        from: Value,
        to: Value,
    ) -> Result<Value, StatementError> {
        Ok(self.between(file, from, to).map(|it| it[field]).sum())
    }
}

impl Memory {
    fn between(
        &self,
        file: FileId,
        from: Value,
        to: Value,
    ) -> impl Iterator<Item = &[Value; FIELDS]> {
        let is_asked = move |it: &(u32, Value)| it.0 == file.0 && (from..=to).contains(&it.1);
        let records = self.0.iter();
        records.filter(move |it| is_asked(it.0)).map(|it| it.1)
    }
}
