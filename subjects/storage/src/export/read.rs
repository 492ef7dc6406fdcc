//! Reads an export file line by line.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use concurve_files::Input;

use super::format::{Content, HEADING, Sum};
use crate::error::Error;

const BUFFER_BYTES: usize = 256 << 10;

/// No line is longer.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// An open export file. Call [`Export::next_table`], then [`Export::next_row`] until it returns
/// `None`, and so on.
pub struct Export {
    path: PathBuf,
    lines: BufReader<Input>,
    line: Vec<u8>,
    number: u64,
    table: String,
    read: Content,
}

impl Export {
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file =
            concurve_files::open_named(path).map_err(Error::io("open the export file", path))?;
        let mut export = Self {
            path: path.to_owned(),
            lines: BufReader::with_capacity(BUFFER_BYTES, file),
            line: Vec::new(),
            number: 0,
            table: String::new(),
            read: Content {
                rows: 0,
                sum: Sum::default(),
            },
        };
        if !export.next_line()? || export.line != HEADING.as_bytes() {
            return Err(export.damaged(&format!("it is no {HEADING:?}")));
        }
        Ok(export)
    }

    /// The name of the next table; `None` after the last one.
    pub fn next_table(&mut self) -> Result<Option<String>, Error> {
        if !self.next_line()? {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&self.line);
        let Some(name) = line.strip_prefix("table ").map(str::to_owned) else {
            return Err(self.damaged("a table should begin"));
        };
        self.table.clone_from(&name);
        self.read = Content {
            rows: 0,
            sum: Sum::default(),
        };
        Ok(Some(name))
    }

    /// The line of the next row of the table; `None` at its end, which must match the rows read.
    pub fn next_row(&mut self) -> Result<Option<&[u8]>, Error> {
        if !self.next_line()? {
            return Err(self.damaged("it ends within a table"));
        }
        if self.line.first().is_some_and(u8::is_ascii_digit) {
            self.read.rows += 1;
            self.read.sum.add(&self.line);
            return Ok(Some(&self.line));
        }
        let Content { rows, sum } = self.read;
        let expected = format!("end {} {rows} {}", self.table, sum.0);
        if self.line != expected.as_bytes() {
            return Err(self.damaged(&format!("{expected:?} should stand there")));
        }
        Ok(None)
    }

    /// The rows of the table that were read so far.
    pub fn read(&self) -> Content {
        self.read
    }

    fn next_line(&mut self) -> Result<bool, Error> {
        self.line.clear();
        let mut lines = self.lines.by_ref().take(LINE_BYTES_MAX);
        let read = lines.read_until(b'\n', &mut self.line);
        if read.map_err(Error::io("read the export file", &self.path))? == 0 {
            return Ok(false);
        }
        self.number += 1;
        if self.line.pop() != Some(b'\n') {
            return Err(self.damaged("it ends within a line"));
        }
        Ok(true)
    }

    fn damaged(&self, what: &str) -> Error {
        Error::Export {
            path: self.path.clone(),
            what: format!("line {}: {what}", self.number),
        }
    }

    /// The error for a line that is no valid row.
    pub fn no_row(&self) -> Error {
        self.damaged("it is no row")
    }
}

#[cfg(test)]
mod tests {
    use concurve_fuzz::Target;

    use super::super::Manifest;
    use super::*;

    /// Reads all rows of all tables.
    fn read(path: &Path) -> Result<u64, Error> {
        let mut export = Export::open(path)?;
        let mut rows = 0;
        while export.next_table()?.is_some() {
            while let Some(row) = export.next_row()? {
                rows += u64::from(!row.is_empty());
            }
        }
        Ok(rows)
    }

    #[test]
    fn any_contents_are_an_export_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (path, manifest) = (folder.path().join("file"), folder.path().join("manifest"));
        let row = "1\t2\t3\tabc";
        let mut sum = Sum::default();
        sum.add(row.as_bytes());
        let file = format!("{HEADING}\ntable t00001\n{row}\nend t00001 1 {}\n", sum.0);
        let listed = format!("{HEADING}\nfile {} 1 1\n", file.len());
        let corpus = [file.into_bytes(), listed.into_bytes()];
        std::fs::write(&path, &corpus[0]).unwrap();
        assert_eq!(read(&path).unwrap(), 1);
        let words: [&[u8]; 5] = [HEADING.as_bytes(), b"table ", b"end ", b"\t", b"file 0 0 0"];
        Target::new(
            env!("CARGO_PKG_NAME"),
            "export::read::tests::any_contents",
            &corpus,
        )
        .words(&words)
        .cases(500)
        .run(|bytes, _| {
            std::fs::write(&path, bytes).unwrap();
            std::fs::write(&manifest, bytes).unwrap();
            let _ = read(&path);
            if let Ok(manifest) = Manifest::read(folder.path()) {
                let _ = (manifest.bytes(), manifest.tables(), manifest.rows());
            }
        });
    }
}
