//! The manifest: the list of files of an export set.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use super::format::HEADING;
use crate::error::Error;

const NAME: &str = "manifest";

/// A file of an export set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportFile {
    pub name: String,
    pub bytes: u64,
    pub tables: u64,
    pub rows: u64,
}

/// Longest manifest.
const BYTES_MAX: u64 = 1 << 20;

/// The files of an export set, the biggest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub folder: PathBuf,
    pub files: Vec<ExportFile>,
}

impl Manifest {
    /// # Errors
    /// If it is missing or invalid, or a file has another length.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(NAME);
        let text = concurve_files::read_named_text(&path, BYTES_MAX)
            .map_err(Error::io("read the manifest of the export set", &path))?;
        let mut lines = text.lines();
        if lines.next() != Some(HEADING) {
            return Err(Error::Export {
                path,
                what: format!("it does not begin with {HEADING:?}"),
            });
        }
        let parsed: Option<Vec<ExportFile>> = lines.map(parse).collect();
        let mut files = parsed.ok_or_else(|| Error::Export {
            path: path.clone(),
            what: "a line is no name, bytes, tables and rows".to_owned(),
        })?;
        files.sort_by_key(|it| std::cmp::Reverse(it.bytes));
        let manifest = Self {
            folder: folder.to_owned(),
            files,
        };
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), Error> {
        for file in &self.files {
            let path = self.folder.join(&file.name);
            let bytes = fs::metadata(&path)
                .map_err(Error::io("find the export file", &path))?
                .len();
            if bytes != file.bytes {
                let what = format!("it has {bytes} bytes, and the manifest says {}", file.bytes);
                return Err(Error::Export { path, what });
            }
        }
        Ok(())
    }

    /// Writes it to the folder of the files.
    pub fn write(&self) -> Result<(), Error> {
        let mut text = format!("{HEADING}\n");
        for it in &self.files {
            writeln!(text, "{} {} {} {}", it.name, it.bytes, it.tables, it.rows)
                .expect("a string takes all");
        }
        let path = self.folder.join(NAME);
        concurve_files::write(&path, text).map_err(Error::io("write", &path))
    }

    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|it| it.bytes).sum()
    }

    pub fn tables(&self) -> u64 {
        self.files.iter().map(|it| it.tables).sum()
    }

    pub fn rows(&self) -> u64 {
        self.files.iter().map(|it| it.rows).sum()
    }
}

fn parse(line: &str) -> Option<ExportFile> {
    let words: Vec<&str> = line.split(' ').collect();
    let [name, bytes, tables, rows] = words.try_into().ok()?;
    let file = ExportFile {
        name: name.to_owned(),
        bytes: bytes.parse().ok()?,
        tables: tables.parse().ok()?,
        rows: rows.parse().ok()?,
    };
    // Each has a line.
    Some(file).filter(|it| it.tables <= it.bytes && it.rows <= it.bytes)
}
