//! Reads an export file line by line.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::format::{Content, HEADING, Sum};
use crate::error::Error;

const BUFFER_BYTES: usize = 256 << 10;

/// An open export file. Call [`Export::next_table`], then [`Export::next_row`] until it returns
/// `None`, and so on.
pub struct Export {
    path: PathBuf,
    lines: BufReader<File>,
    line: Vec<u8>,
    number: u64,
    table: String,
    read: Content,
}

impl Export {
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::io("open the export file", path))?;
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
        let read = self.lines.read_until(b'\n', &mut self.line);
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
