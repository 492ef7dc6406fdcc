//! The catalogue: the files, and the names of their fields.
//!
//! The names of fields are records of a separate file ([`fields`]). They are written before the
//! file is created and removed after it was dropped. A file exists only if both exist, so the
//! catalogue is consistent after a crash.

mod fields;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::hash::RandomState;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use concurve_latch::{Class, Mutex, RwLock};
use concurve_records::{Engine, Fault, FileDefinition, Status, TransactionKind};
use concurve_statements::{FileColumns, FileId, StatementError};
use hashbrown::HashMap;

use super::layout::{FIELD_BYTES, definition};
use super::refusal::Refusal;
use fields::{NAME_BYTES, OWN_FILE};

/// Most fields of a file.
const FIELDS_MAX: usize = 64;
/// Separates the names of a database and of a file; neither contains it.
const SEPARATOR: char = '-';

/// The files of the statement service.
#[derive(Debug)]
pub struct Catalogue {
    known: RwLock<Known>,
    /// Files are created and dropped one at a time.
    changing: Mutex<()>,
    version: AtomicU64,
}

#[derive(Debug, Default)]
struct Known {
    /// By the names of the database and of the file. The keys of the hasher are stored in it, so
    /// that processes forked from this one hash alike.
    by_name: HashMap<String, Arc<File>, RandomState>,
    /// By number; dropped files stay.
    files: Vec<Arc<File>>,
}

/// A file.
#[derive(Debug)]
pub struct File {
    pub id: FileId,
    /// Its name in the record engine.
    pub name: String,
    pub fields: Vec<String>,
    pub record_bytes: usize,
}

impl Catalogue {
    /// Reads what is on the disk.
    ///
    /// # Errors
    /// If it cannot be read, or the catalogue's file cannot be created.
    pub fn open(engine: &Engine) -> Result<Self, Fault> {
        let mut there: BTreeMap<String, FileDefinition> = engine.files().into_iter().collect();
        if !there.contains_key(OWN_FILE) {
            engine.create_file(OWN_FILE, &fields::definition())?;
        }
        let mut session = engine.session();
        let all = fields::read_all(&mut session)
            .map_err(|status| Fault::Stopped("the catalogue cannot be read".to_owned(), status))?;
        let mut known = Known::default();
        for (name, fields) in all {
            // A crash can leave names without a file: they are ignored.
            if let Some(definition) = there.remove(&name) {
                known.add(name, fields, usize::from(definition.record_bytes));
            }
        }
        let class = Class::named("catalogue");
        Ok(Self {
            known: class.rwlock(known),
            changing: class.mutex(()),
            version: AtomicU64::new(1),
        })
    }

    /// A file by its number.
    pub fn file(&self, id: FileId) -> Arc<File> {
        Arc::clone(&self.known.read().files[id.0 as usize])
    }

    /// Creates a file.
    ///
    /// # Errors
    /// If there is one of this name, or it cannot be created.
    pub fn create(
        &self,
        engine: &Engine,
        name: String,
        fields: Vec<String>,
        record_bytes: Option<u16>,
    ) -> Result<(), Refusal> {
        let record_bytes = checked_length(&fields, record_bytes)?;
        let _changing = self.changing.lock();
        if self.known.read().by_name.contains_key(&name) {
            return Err(Status::FileExists.into());
        }
        if engine.files().iter().any(|it| it.0 == name) {
            return Err(Refusal::Usage(format!(
                "{name} is a file that the statement service has not created: use another name"
            )));
        }
        let mut session = engine.session();
        session.begin(TransactionKind::Exclusive)?;
        fields::remove(&mut session, &name)?;
        fields::insert(&mut session, &name, &fields)?;
        session.end()?;
        let created = session.create_file(&name, &definition(record_bytes));
        created.map_err(|fault| match fault {
            Fault::Definition(why) => Refusal::Usage(why),
            fault => fault.status().into(),
        })?;
        let mut known = self.known.write();
        known.add(name, fields, usize::from(record_bytes));
        self.version.fetch_add(1, Release);
        Ok(())
    }

    /// Drops a file with its records.
    ///
    /// # Errors
    /// If there is none, or a transaction uses it.
    pub fn drop_file(&self, engine: &Engine, name: &str) -> Result<(), Refusal> {
        let _changing = self.changing.lock();
        if !self.known.read().by_name.contains_key(name) {
            return Err(Status::FileNotFound.into());
        }
        let mut session = engine.session();
        session.drop_file(name)?;
        self.known.write().by_name.remove(name);
        self.version.fetch_add(1, Release);
        session.begin(TransactionKind::Exclusive)?;
        fields::remove(&mut session, name)?;
        session.end()?;
        Ok(())
    }
}

impl Known {
    fn add(&mut self, name: String, fields: Vec<String>, record_bytes: usize) {
        let file = Arc::new(File {
            id: FileId(self.files.len() as u32),
            name: name.clone(),
            fields,
            record_bytes,
        });
        self.files.push(Arc::clone(&file));
        self.by_name.insert(name, file);
    }
}

/// The catalogue as the sessions of one database see it.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub catalogue: &'a Catalogue,
    pub database: &'a str,
}

impl View<'_> {
    /// The name of a file of this database in the record engine.
    ///
    /// # Errors
    /// If no file can have it.
    pub fn name(&self, file: &str) -> Result<String, Refusal> {
        check_name(file, "a file")?;
        let name = self.full_name(file);
        if name.len() > NAME_BYTES {
            return Err(Refusal::Usage(format!(
                "{name} has {} letters: a file's name with its database has at most {NAME_BYTES}",
                name.len()
            )));
        }
        Ok(name)
    }

    /// The names of the files that begin with `prefix`.
    pub fn files(&self, prefix: &str) -> Vec<String> {
        let (known, whole) = (self.catalogue.known.read(), self.full_name(prefix));
        let own = |it: &&String| it.starts_with(&whole) && !it[whole.len()..].contains(SEPARATOR);
        let names = known.by_name.keys().filter(own);
        let mut names: Vec<String> = names
            .map(|it| format!("{prefix}{}", &it[whole.len()..]))
            .collect();
        names.sort_unstable();
        names
    }

    /// A file by its name, if there is one.
    pub fn file_named(&self, file: &str) -> Option<Arc<File>> {
        let known = self.catalogue.known.read();
        known.by_name.get(&self.full_name(file)).cloned()
    }

    /// A file by its name.
    ///
    /// # Errors
    /// If there is none.
    pub fn file(&self, name: &str) -> Result<Arc<File>, Refusal> {
        let found = self.file_named(name);
        found.ok_or_else(|| StatementError::NoFile(name.to_owned()).into())
    }

    fn full_name(&self, file: &str) -> String {
        match self.database {
            "" => file.to_owned(),
            database => format!("{database}{SEPARATOR}{file}"),
        }
    }
}

impl concurve_statements::Catalogue for View<'_> {
    fn file(&self, name: &str) -> Option<FileColumns> {
        self.file_named(name).map(|it| FileColumns {
            file: it.id,
            fields: it.fields.clone(),
        })
    }

    fn version(&self) -> u64 {
        self.catalogue.version.load(Acquire)
    }
}

/// Refuses a text that is not a valid name; `of` says of what.
pub fn check_name(name: &str, of: &str) -> Result<(), Refusal> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_';
    if (1..=NAME_BYTES).contains(&name.len()) && name.chars().all(is_plain) {
        return Ok(());
    }
    let shown: String = name.chars().take(NAME_BYTES).collect();
    Err(Refusal::Usage(format!(
        "'{shown}' is not a valid name of {of}: use 1 to {NAME_BYTES} letters, digits or _"
    )))
}

/// The length of records of these fields.
fn checked_length(fields: &[String], asked: Option<u16>) -> Result<u16, Refusal> {
    if !(1..=FIELDS_MAX).contains(&fields.len()) {
        return Err(Refusal::Usage(format!(
            "{} fields: a file has 1 to {FIELDS_MAX}, the first is its key",
            fields.len()
        )));
    }
    for (at, field) in fields.iter().enumerate() {
        check_name(field, "a field")?;
        if fields[..at].contains(field) {
            return Err(Refusal::Usage(format!("two fields are named {field}")));
        }
    }
    let needed = (fields.len() * FIELD_BYTES) as u16;
    match asked {
        Some(asked) if asked < needed => Err(Refusal::Usage(format!(
            "BYTES {asked}: {} fields need {needed}",
            fields.len()
        ))),
        Some(asked) => Ok(asked),
        None => Ok(needed),
    }
}
