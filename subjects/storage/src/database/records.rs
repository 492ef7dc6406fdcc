//! The record engine: all tables in six files, like the document's six data volumes; the engine's
//! checkpoint as savepoint.

use std::path::Path;

use concurve_records::{
    Engine, EngineOptions, FileDefinition, FileHandle, Get, Key, LockBias, Segment, SegmentKind,
    Session, Status, TransactionKind,
};

use super::session::{COMMIT_BYTES, Database, DatabaseSession};
use crate::error::Error;
use crate::export::{Content, Export, Fields, Sum, TEXT_BYTES_MAX, write_row};

const VOLUMES: u32 = 6;

/// Offsets in a record: table, id, part, amount, length of the text, text.
const ID: usize = 4;
const PART: usize = 12;
const AMOUNT: usize = 16;
const LENGTH: usize = 24;
const TEXT: usize = 25;
const RECORD_BYTES: usize = TEXT + TEXT_BYTES_MAX;

pub struct Records {
    engine: Engine,
}

impl Records {
    pub fn new(folder: &Path) -> Result<Self, Error> {
        let what = || format!("cannot make a record engine in {}", folder.display());
        let (engine, _) =
            Engine::open(folder, EngineOptions::default()).map_err(Error::database(what))?;
        for volume in 0..VOLUMES {
            engine
                .create_file(&name(volume), &definition())
                .map_err(Error::database(what))?;
        }
        Ok(Self { engine })
    }
}

fn name(volume: u32) -> String {
    format!("volume-{}", volume + 1)
}

fn definition() -> FileDefinition {
    let unsigned = |offset: usize, bytes| Segment {
        offset: offset as u16,
        bytes,
        kind: SegmentKind::Unsigned,
    };
    FileDefinition {
        record_bytes: RECORD_BYTES as u16,
        keys: vec![Key {
            segments: vec![unsigned(0, 4), unsigned(ID, 8)],
            duplicates: false,
        }],
    }
}

impl Database for Records {
    fn connect(&self, _loader: usize) -> Result<Box<dyn DatabaseSession + '_>, Error> {
        let mut session = self.engine.session();
        let opened: Result<Vec<FileHandle>, Status> =
            (0..VOLUMES).map(|it| session.open(&name(it))).collect();
        Ok(Box::new(RecordSession {
            engine: &self.engine,
            session,
            volumes: opened.map_err(Error::database(|| "cannot open the files".to_owned()))?,
        }))
    }
}

struct RecordSession<'a> {
    engine: &'a Engine,
    session: Session,
    volumes: Vec<FileHandle>,
}

impl DatabaseSession for RecordSession<'_> {
    fn load(&mut self, table: &str, rows: &mut Export) -> Result<(), Error> {
        let number = number(table)?;
        let volume = self.volume(number);
        while self.load_part(table, number, volume, rows)? {}
        Ok(())
    }

    fn savepoint(&mut self) -> Result<(), Error> {
        self.engine
            .checkpoint()
            .map_err(Error::database(|| "cannot make a checkpoint".to_owned()))
    }

    fn count(&mut self, table: &str) -> Result<u64, Error> {
        let mut rows = 0;
        self.each(table, |_| rows += 1)?;
        Ok(rows)
    }

    fn read(&mut self, table: &str) -> Result<Content, Error> {
        let (mut rows, mut sum, mut line) = (0, Sum::default(), Vec::new());
        self.each(table, |record| {
            line.clear();
            write_row(fields(record), &mut line);
            rows += 1;
            sum.add(&line);
        })?;
        Ok(Content { rows, sum })
    }
}

impl RecordSession<'_> {
    fn volume(&self, table: u32) -> FileHandle {
        self.volumes[(table % VOLUMES) as usize]
    }

    /// Loads rows in one transaction; whether there may be more rows.
    fn load_part(
        &mut self,
        table: &str,
        number: u32,
        volume: FileHandle,
        rows: &mut Export,
    ) -> Result<bool, Error> {
        let what = || format!("cannot load table {table}");
        let mut record = [0; RECORD_BYTES];
        let mut bytes = 0;
        self.session
            .begin(TransactionKind::Concurrent)
            .map_err(Error::database(what))?;
        while bytes < COMMIT_BYTES {
            let Some(line) = rows.next_row()? else {
                self.session.end().map_err(Error::database(what))?;
                return Ok(false);
            };
            bytes += line.len();
            match Fields::parse(line).filter(|it| it.text.len() <= TEXT_BYTES_MAX) {
                Some(fields) => fill(&mut record, number, fields),
                None => return Err(rows.no_row()),
            }
            self.session
                .insert(volume, &record)
                .map_err(Error::database(what))?;
        }
        self.session.end().map_err(Error::database(what))?;
        Ok(true)
    }

    fn each(&mut self, table: &str, mut take: impl FnMut(&[u8])) -> Result<(), Error> {
        let what = || format!("cannot read table {table}");
        let number = number(table)?;
        let volume = self.volume(number);
        let mut first = [0; 12];
        first[..ID].copy_from_slice(&number.to_le_bytes());
        let mut get = Get::AtLeast(0, &first);
        loop {
            match self.session.get(volume, get, LockBias::None) {
                Ok(record) if record[..ID] == first[..ID] => take(record),
                Ok(_) | Err(Status::EndOfFile) => return Ok(()),
                Err(status) => return Err(status).map_err(Error::database(what)),
            }
            get = Get::Next;
        }
    }
}

fn number(table: &str) -> Result<u32, Error> {
    let digits = table.strip_prefix('t').and_then(|it| it.parse().ok());
    digits.ok_or_else(|| Error::Usage(format!("{table}: tables are named t and a number")))
}

fn fill(record: &mut [u8; RECORD_BYTES], table: u32, fields: Fields) {
    let length = fields.text.len();
    record.fill(0);
    record[..ID].copy_from_slice(&table.to_le_bytes());
    record[ID..PART].copy_from_slice(&fields.id.to_le_bytes());
    record[PART..AMOUNT].copy_from_slice(&fields.part.to_le_bytes());
    record[AMOUNT..LENGTH].copy_from_slice(&fields.amount.to_le_bytes());
    record[LENGTH] = length as u8;
    record[TEXT..TEXT + length].copy_from_slice(fields.text.as_bytes());
}

fn fields(record: &[u8]) -> Fields<'_> {
    let length = usize::from(record[LENGTH]);
    let number = |from: usize| {
        let bytes = record[from..from + 8].try_into();
        u64::from_le_bytes(bytes.expect("eight bytes"))
    };
    Fields {
        id: number(ID),
        part: number(PART) as u32,
        amount: number(AMOUNT) as i64,
        text: std::str::from_utf8(&record[TEXT..TEXT + length]).unwrap_or_default(),
    }
}
