//! The catalogue as the sessions of one database see it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;

use concurve_statements::{FileColumns, StatementError};

use super::names::{NAME_BYTES, SEPARATOR, check_name};
use super::{Catalogue, File, Refusal};

/// The catalogue as the sessions of one database see it.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub catalogue: &'a Catalogue,
    pub database: &'a str,
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

    /// The same, of a file that must be there.
    ///
    /// # Errors
    /// If it is not.
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
