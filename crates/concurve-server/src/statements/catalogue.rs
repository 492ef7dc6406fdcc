//! Which files there are, and what their fields are called.
//!
//! The names of fields are records of a file of their own. They are written before the file is made
//! and taken out after it was dropped: a file is there if both are, whatever a crash has left. A
//! record of the catalogue: name of the file, number of the field (highest byte first), its name.

use std::collections::BTreeMap;
use std::hash::RandomState;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use concurve_latch::{Class, Mutex, RwLock};
use concurve_records::{
    Engine, Fault, FileDefinition, Get, Key, LockBias, Segment, SegmentKind, Session, Status,
    TransactionKind,
};
use concurve_statements::{FileColumns, FileId};
use hashbrown::HashMap;

use super::Refusal;
use super::layout::{FIELD_BYTES, definition};

/// Most fields of a file.
const FIELDS_MAX: usize = 64;
/// Longest name of a file with that of its database, as the record engine's.
const NAME_BYTES: usize = 64;
const NUMBER_BYTES: usize = 2;
/// No name of a file can be this one.
const OWN_FILE: &str = "catalogue--fields";
/// Between the name of a database and that of a file: it is in neither.
const SEPARATOR: char = '-';

#[derive(Debug)]
pub struct Catalogue {
    known: RwLock<Known>,
    /// Files are made and dropped one at a time.
    changing: Mutex<()>,
    version: AtomicU64,
}

#[derive(Debug, Default)]
struct Known {
    /// By the name of the database and the file's. With keys of its own: processes forked from this
    /// one hash alike.
    by_name: HashMap<String, Arc<File>, RandomState>,
    /// By number, the dropped ones too.
    files: Vec<Arc<File>>,
}

/// A file, as long as it is there.
#[derive(Debug)]
pub struct File {
    pub id: FileId,
    /// As the record engine calls it.
    pub name: String,
    pub fields: Vec<String>,
    pub record_bytes: usize,
}

/// The catalogue as the sessions of one database see it.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub catalogue: &'a Catalogue,
    pub database: &'a str,
}

impl Catalogue {
    /// Reads what is on the disk.
    ///
    /// # Errors
    /// If it cannot be read, or the catalogue's file cannot be made.
    pub fn open(engine: &Engine) -> Result<Self, Fault> {
        let mut there: BTreeMap<String, FileDefinition> = engine.files().into_iter().collect();
        if !there.contains_key(OWN_FILE) {
            engine.create_file(OWN_FILE, &own_definition())?;
        }
        let mut session = engine.session();
        let fields = read_fields(&mut session)
            .map_err(|status| Fault::Stopped("the catalogue cannot be read".to_owned(), status))?;
        let mut known = Known::default();
        for (name, fields) in fields {
            // Without a file, these are what a crash has left.
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

    /// Makes a file.
    ///
    /// # Errors
    /// If there is one of this name, or it cannot be.
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
                "{name} is a file of records that is not the statement service's: take another name"
            )));
        }
        let mut session = engine.session();
        session.begin(TransactionKind::Exclusive)?;
        take_out(&mut session, &name)?;
        put_in(&mut session, &name, &fields)?;
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

    /// Gives up a file with all that is in it.
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
        take_out(&mut session, name)?;
        session.end()?;
        Ok(())
    }
}

impl View<'_> {
    /// What the record engine calls a file of this database.
    ///
    /// # Errors
    /// If it cannot be one's name.
    pub fn name(&self, file: &str) -> Result<String, Refusal> {
        check_name(file, "a file")?;
        let name = self.full_name(file);
        if name.len() > NAME_BYTES {
            return Err(Refusal::Usage(format!(
                "{name} has {} letters: with its database, a file's name has at most {NAME_BYTES}",
                name.len()
            )));
        }
        Ok(name)
    }

    /// Names of files that begin so.
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

    /// A file by its name.
    pub fn file_named(&self, file: &str) -> Option<Arc<File>> {
        let known = self.catalogue.known.read();
        known.by_name.get(&self.full_name(file)).cloned()
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

/// Refuses what is no name; `of` says whose it would be.
pub fn check_name(name: &str, of: &str) -> Result<(), Refusal> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_';
    if (1..=NAME_BYTES).contains(&name.len()) && name.chars().all(is_plain) {
        return Ok(());
    }
    let shown: String = name.chars().take(NAME_BYTES).collect();
    Err(Refusal::Usage(format!(
        "'{shown}' is no name of {of}: take 1 to {NAME_BYTES} letters, digits or _"
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

fn own_definition() -> FileDefinition {
    let part = |offset: usize, bytes: usize| Segment {
        offset: offset as u16,
        bytes: bytes as u16,
        kind: SegmentKind::Bytes,
    };
    FileDefinition {
        record_bytes: (2 * NAME_BYTES + NUMBER_BYTES) as u16,
        keys: vec![Key {
            segments: vec![part(0, NAME_BYTES), part(NAME_BYTES, NUMBER_BYTES)],
            duplicates: false,
        }],
    }
}

/// The key of a field.
fn own_key(file: &str, number: usize) -> Vec<u8> {
    let mut key = file.as_bytes().to_vec();
    key.resize(NAME_BYTES, 0);
    key.extend((number as u16).to_be_bytes());
    key
}

fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|it| *it == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// The fields of all files, in order.
fn read_fields(session: &mut Session) -> Result<BTreeMap<String, Vec<String>>, Status> {
    let own = session.open(OWN_FILE)?;
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut next = Get::First(0);
    loop {
        let record = match session.get(own, next, LockBias::None) {
            Ok(record) => record,
            Err(Status::EndOfFile) => return Ok(all),
            Err(status) => return Err(status),
        };
        let (file, field) = (&record[..NAME_BYTES], &record[NAME_BYTES + NUMBER_BYTES..]);
        all.entry(text(file)).or_default().push(text(field));
        next = Get::Next;
    }
}

fn put_in(session: &mut Session, file: &str, fields: &[String]) -> Result<(), Status> {
    let own = session.open(OWN_FILE)?;
    for (number, field) in fields.iter().enumerate() {
        let mut record = own_key(file, number);
        record.extend_from_slice(field.as_bytes());
        record.resize(2 * NAME_BYTES + NUMBER_BYTES, 0);
        session.insert(own, &record)?;
    }
    Ok(())
}

fn take_out(session: &mut Session, file: &str) -> Result<(), Status> {
    let own = session.open(OWN_FILE)?;
    for number in 0.. {
        match session.get(
            own,
            Get::Equal(0, &own_key(file, number)),
            LockBias::SingleWait,
        ) {
            Ok(_) => session.delete(own)?,
            Err(Status::KeyNotFound) => break,
            Err(status) => return Err(status),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use concurve_records::Settings;

    use super::*;

    fn names(fields: &[&str]) -> Vec<String> {
        fields.iter().map(|it| (*it).to_owned()).collect()
    }

    fn create(catalogue: &Catalogue, engine: &Engine, name: &str, fields: &[&str]) -> String {
        let created = catalogue.create(engine, name.to_owned(), names(fields), None);
        created.map_or_else(|it| it.to_string(), |()| "OK".to_owned())
    }

    #[test]
    fn files_are_there_again_after_another_start_with_their_fields_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let many: Vec<String> = (0..FIELDS_MAX).map(|it| format!("f{it}")).collect();
        for start in 0..2 {
            let (engine, _) = Engine::open(folder.path(), Settings::default()).unwrap();
            let catalogue = Catalogue::open(&engine).unwrap();
            if start == 0 {
                assert_eq!(create(&catalogue, &engine, "b", &["id", "x"]), "OK");
                assert_eq!(create(&catalogue, &engine, "d-b", &["id"]), "OK");
                assert_eq!(create(&catalogue, &engine, "gone", &["id"]), "OK");
                catalogue.drop_file(&engine, "gone").unwrap();
                let many = many.clone();
                catalogue
                    .create(&engine, "many".to_owned(), many, Some(1000))
                    .unwrap();
            }
            let view = |database| View {
                catalogue: &catalogue,
                database,
            };
            assert_eq!(view("").files(""), ["b", "many"]);
            assert_eq!(view("d").files("b"), ["b"]);
            assert_eq!(view("d").file_named("b").unwrap().fields, ["id"]);
            let file = view("").file_named("many").unwrap();
            assert_eq!(
                (file.fields.clone(), file.record_bytes),
                (many.clone(), 1000)
            );
            engine.close().unwrap();
        }
    }

    #[test]
    fn what_a_crash_left_of_a_file_is_none_and_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (engine, _) = Engine::open(folder.path(), Settings::default()).unwrap();
        Catalogue::open(&engine).unwrap();
        put_in(&mut engine.session(), "half", &names(&["a", "b", "c"])).unwrap();
        let catalogue = Catalogue::open(&engine).unwrap();
        let view = View {
            catalogue: &catalogue,
            database: "",
        };
        assert!(view.files("").is_empty());
        assert_eq!(create(&catalogue, &engine, "half", &["id"]), "OK");
        let again = Catalogue::open(&engine).unwrap();
        assert_eq!(again.file(FileId(0)).fields, ["id"]);
    }

    #[test]
    fn what_cannot_be_is_refused_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (engine, _) = Engine::open(folder.path(), Settings::default()).unwrap();
        engine.create_file("records", &definition(8)).unwrap();
        let catalogue = Catalogue::open(&engine).unwrap();
        for (name, fields, why) in [
            ("a", &["id", "x", "id"][..], "two fields are named id"),
            ("a", &[], "0 fields: a file has 1 to 64"),
            ("a", &["id", "a b"], "'a b' is no name of a field"),
            ("records", &["id"], "is not the statement service's"),
        ] {
            let refusal = create(&catalogue, &engine, name, fields);
            assert!(refusal.contains(why), "{refusal}");
        }
        let short = catalogue.create(&engine, "a".to_owned(), names(&["id", "x"]), Some(15));
        assert!(short.unwrap_err().to_string().contains("2 fields need 16"));
        assert_eq!(create(&catalogue, &engine, "a", &["id"]), "OK");
        assert!(create(&catalogue, &engine, "a", &["id"]).starts_with("59:"));
        assert!(catalogue.drop_file(&engine, "records").is_err());
        let view = View {
            catalogue: &catalogue,
            database: "",
        };
        assert_eq!(view.files(""), ["a"]);
        for name in ["", "a-b", "é", &"x".repeat(65)] {
            assert!(view.name(name).is_err(), "{name}");
        }
        let long = View {
            database: &"d".repeat(60),
            ..view
        };
        assert!(long.name("files").is_err());
    }
}
