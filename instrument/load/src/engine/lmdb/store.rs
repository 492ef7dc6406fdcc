//! An environment and its files.

// A mapped file is only as safe as the programs that change it.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use concurve_records::command::NUMBER_BYTES;
use concurve_records::{FileDefinition, SegmentKind, Status};
use heed::types::Bytes;
use heed::{Database, DatabaseFlags, Env, EnvFlags, EnvOpenOptions, PutFlags, RwTxn};

use super::error::LmdbError;

/// The maximal size of an environment. The file grows only with the data.
const MAP_BYTES: usize = 16 << 30;
/// Sessions that may read at once, over all processes.
const READERS_MAX: u32 = 10_000;
/// Files of an environment: 16 sets of 4, and others.
const FILES_MAX: u32 = 128;
/// The database with the definitions of the files, by name.
const DEFINITIONS: &str = "definitions";

/// How commits reach the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    pub syncs: bool,
    pub writes_map: bool,
}

/// An environment that is open.
#[derive(Debug)]
pub struct Store {
    env: Env,
    definitions: Database<Bytes, Bytes>,
    files: BTreeMap<String, File>,
}

/// A file of records.
#[derive(Debug, Clone)]
pub struct File {
    pub database: Database<Bytes, Bytes>,
    pub record_bytes: usize,
    /// Offset and length of the key in a record. A file without a key keeps its records in the order
    /// of insertion.
    key: Option<(usize, usize)>,
    pub duplicates: bool,
}

impl Store {
    /// Opens an environment in a folder that exists.
    pub fn open(folder: &Path, mode: Mode) -> Result<Self, LmdbError> {
        let mut flags = EnvFlags::empty();
        flags.set(EnvFlags::NO_SYNC, !mode.syncs);
        flags.set(EnvFlags::WRITE_MAP, mode.writes_map);
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP_BYTES);
        options.max_readers(READERS_MAX);
        options.max_dbs(FILES_MAX);
        // SAFETY: the flags keep LMDB's locks, so that all users of the file by LMDB are synchronised.
        // That no other program writes to the file is the responsibility of the user who names the
        // folder.
        let env = unsafe { options.flags(flags).open(folder)? };
        let mut transaction = env.write_txn()?;
        let definitions = env.create_database(&mut transaction, Some(DEFINITIONS))?;
        transaction.commit()?;
        let mut store = Self {
            env,
            definitions,
            files: BTreeMap::new(),
        };
        store.open_files()?;
        Ok(store)
    }

    fn open_files(&mut self) -> Result<(), LmdbError> {
        let transaction = self.env.read_txn()?;
        for entry in self.definitions.iter(&transaction)? {
            let (name, definition) = entry?;
            let name = String::from_utf8_lossy(name).into_owned();
            let definition = FileDefinition::decode(definition);
            let database = self.env.open_database(&transaction, Some(&name))?;
            let (Some(definition), Some(database)) = (definition, database) else {
                return Err(LmdbError::NoFile(name));
            };
            let file = File::new(&definition, database)?;
            self.files.insert(name, file);
        }
        // Databases are visible to other transactions after the one that opened them has committed.
        transaction.commit()?;
        Ok(())
    }

    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The names of files that begin so.
    pub fn names(&self, prefix: &[u8]) -> Vec<String> {
        let names = self.files.keys();
        let names = names.filter(|it| it.as_bytes().starts_with(prefix));
        names.cloned().collect()
    }

    pub fn file(&self, name: &[u8]) -> Result<&File, LmdbError> {
        let name = String::from_utf8_lossy(name);
        let file = self.files.get(&*name);
        file.ok_or_else(|| LmdbError::NoFile(name.into_owned()))
    }

    /// Makes a file.
    pub fn create(&mut self, name: &[u8], definition: &FileDefinition) -> Result<(), LmdbError> {
        let name = String::from_utf8_lossy(name).into_owned();
        if self.files.contains_key(&name) {
            return Err(Status::FileExists.into());
        }
        let mut flags = DatabaseFlags::empty();
        let has_duplicates = definition.keys.iter().any(|it| it.duplicates);
        flags.set(DatabaseFlags::DUP_SORT, has_duplicates);
        let mut transaction = self.env.write_txn()?;
        let mut options = self.env.database_options().types::<Bytes, Bytes>();
        let database = options.name(&name).flags(flags).create(&mut transaction)?;
        let file = File::new(definition, database)?;
        let encoded = definition.encode();
        self.definitions
            .put(&mut transaction, name.as_bytes(), &encoded)?;
        transaction.commit()?;
        self.files.insert(name, file);
        Ok(())
    }

    /// Deletes a file with all its records.
    pub fn drop_file(&mut self, name: &[u8]) -> Result<(), LmdbError> {
        let database = self.file(name)?.database;
        let mut transaction = self.env.write_txn()?;
        database.clear(&mut transaction)?;
        self.definitions.delete(&mut transaction, name)?;
        transaction.commit()?;
        self.files.remove(&*String::from_utf8_lossy(name));
        Ok(())
    }

    /// Adds records that begin with the numbers of a range.
    pub fn fill(
        &self,
        name: &[u8],
        numbers: RangeInclusive<u64>,
        rest: &[u8],
    ) -> Result<(), LmdbError> {
        let file = self.file(name)?;
        let mut transaction = self.env.write_txn()?;
        let mut record = vec![b'0'; NUMBER_BYTES];
        record.extend_from_slice(rest);
        for number in numbers {
            let digits = format!("{number:0NUMBER_BYTES$}");
            record[..NUMBER_BYTES].copy_from_slice(digits.as_bytes());
            file.put(&mut transaction, PutFlags::NO_OVERWRITE, &record)?;
        }
        Ok(transaction.commit()?)
    }

    /// Calls a function with each record of a file.
    pub fn each(
        &self,
        name: &[u8],
        mut visit: impl FnMut(&[u8]) -> Result<(), LmdbError>,
    ) -> Result<(), LmdbError> {
        let file = self.file(name)?;
        let transaction = self.env.read_txn()?;
        let entries = file.database.iter(&transaction)?;
        for entry in entries.move_through_duplicate_values() {
            visit(entry?.1)?;
        }
        Ok(())
    }
}

impl File {
    fn new(
        definition: &FileDefinition,
        database: Database<Bytes, Bytes>,
    ) -> Result<Self, LmdbError> {
        let record_bytes = usize::from(definition.record_bytes);
        let [key] = &definition.keys[..] else {
            if !definition.keys.is_empty() {
                return Err(LmdbError::Unsupported(
                    "a file with several keys".to_owned(),
                ));
            }
            return Ok(Self {
                database,
                record_bytes,
                key: None,
                duplicates: false,
            });
        };
        let [segment] = &key.segments[..] else {
            return Err(LmdbError::Unsupported(
                "a key of several segments".to_owned(),
            ));
        };
        if segment.kind != SegmentKind::Bytes {
            return Err(LmdbError::Unsupported("a key that is no text".to_owned()));
        }
        Ok(Self {
            database,
            record_bytes,
            key: Some((usize::from(segment.offset), usize::from(segment.bytes))),
            duplicates: key.duplicates,
        })
    }

    /// The key of a record.
    pub fn key<'a>(&self, record: &'a [u8]) -> Result<&'a [u8], Status> {
        if record.len() != self.record_bytes {
            return Err(Status::RecordLength);
        }
        let (offset, bytes) = self.key.ok_or(Status::InvalidKeyNumber)?;
        Ok(&record[offset..][..bytes])
    }

    /// Inserts a record, or replaces the one with the same key, as the flags say.
    pub fn put(
        &self,
        writing: &mut RwTxn,
        flags: PutFlags,
        record: &[u8],
    ) -> Result<(), LmdbError> {
        match self.key(record) {
            Err(Status::InvalidKeyNumber) => self.append(writing, record),
            key => Ok(self.database.put_with_flags(writing, flags, key?, record)?),
        }
    }

    fn append(&self, writing: &mut RwTxn, record: &[u8]) -> Result<(), LmdbError> {
        let last = self.database.last(writing)?;
        let last = last.and_then(|(number, _)| number.try_into().ok());
        let number = last
            .map_or(0, |it| u64::from_be_bytes(it) + 1)
            .to_be_bytes();
        let flags = PutFlags::APPEND;
        Ok(self
            .database
            .put_with_flags(writing, flags, &number, record)?)
    }
}
