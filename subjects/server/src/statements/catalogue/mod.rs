//! Which files there are, and what their fields are called.
//!
//! The names of fields are records of a file of their own. They are written before the file is made
//! and taken out after it was dropped: a file is there if both are, whatever a crash has left.

mod fields;
mod names;
#[cfg(test)]
mod tests;
mod view;

use std::collections::BTreeMap;
use std::hash::RandomState;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Release;

use concurve_latch::{Class, Mutex, RwLock};
use concurve_records::{Engine, Fault, FileDefinition, Status, TransactionKind};
use concurve_statements::FileId;
use hashbrown::HashMap;

pub use names::check_name;
pub use view::View;

use super::Refusal;
use super::layout::definition;
use fields::OWN_FILE;
use names::checked_length;

/// Which files there are.
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

impl Catalogue {
    /// Reads what is on the disk.
    ///
    /// # Errors
    /// If it cannot be read, or the catalogue's file cannot be made.
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
        fields::take_out(&mut session, &name)?;
        fields::put_in(&mut session, &name, &fields)?;
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
        fields::take_out(&mut session, name)?;
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
