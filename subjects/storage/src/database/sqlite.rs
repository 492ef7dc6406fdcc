//! SQLite: a file in WAL mode for each loader, a checkpoint as savepoint.

use std::path::PathBuf;

use rusqlite::types::ValueRef;

use super::session::{COMMIT_BYTES, Database, DatabaseSession};
use crate::error::Error;
use crate::export::{Content, Export, Fields, Sum, write_row};

pub struct Sqlite {
    folder: PathBuf,
}

impl Sqlite {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }
}

impl Database for Sqlite {
    fn connect(&self, loader: usize) -> Result<Box<dyn DatabaseSession + '_>, Error> {
        let path = self.folder.join(format!("loader-{}.db", loader + 1));
        let open = || {
            let link = rusqlite::Connection::open(&path)?;
            link.pragma_update(None, "journal_mode", "wal")?;
            // Commits do not wait for the disk; savepoints do.
            link.pragma_update(None, "synchronous", "normal")?;
            Ok::<_, rusqlite::Error>(link)
        };
        let link = open().map_err(Error::database(|| {
            format!("cannot open {}", path.display())
        }))?;
        Ok(Box::new(SqliteSession { link }))
    }
}

struct SqliteSession {
    link: rusqlite::Connection,
}

impl DatabaseSession for SqliteSession {
    fn load(&mut self, table: &str, rows: &mut Export) -> Result<(), Error> {
        let create = format!(
            "CREATE TABLE {table} (id INTEGER PRIMARY KEY, part INTEGER NOT NULL, \
             amount INTEGER NOT NULL, text TEXT NOT NULL)"
        );
        self.link
            .execute_batch(&create)
            .map_err(Error::database(|| format!("cannot make table {table}")))?;
        while self.load_part(table, rows)? {}
        Ok(())
    }

    fn savepoint(&mut self) -> Result<(), Error> {
        self.link
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .map_err(Error::database(|| "cannot make a checkpoint".to_owned()))
    }

    fn count(&mut self, table: &str) -> Result<u64, Error> {
        let query = format!("SELECT count(*) FROM {table}");
        self.link
            .query_row(&query, [], |row| row.get::<_, i64>(0))
            .map(|rows| rows as u64)
            .map_err(Error::database(|| format!("cannot count table {table}")))
    }

    fn read(&mut self, table: &str) -> Result<Content, Error> {
        self.read_all(table)
            .map_err(Error::database(|| format!("cannot read table {table}")))
    }
}

impl SqliteSession {
    /// Loads rows in one transaction; whether there may be more rows.
    fn load_part(&mut self, table: &str, rows: &mut Export) -> Result<bool, Error> {
        let what = || format!("cannot load table {table}");
        let transaction = self.link.transaction().map_err(Error::database(what))?;
        let sql = format!("INSERT INTO {table} VALUES (?, ?, ?, ?)");
        let mut bytes = 0;
        let mut is_more = true;
        {
            let mut insert = transaction
                .prepare_cached(&sql)
                .map_err(Error::database(what))?;
            while is_more && bytes < COMMIT_BYTES {
                is_more = match rows.next_row()? {
                    Some(line) => {
                        bytes += line.len();
                        match Fields::parse(line) {
                            Some(it) => insert
                                .execute((it.id as i64, it.part, it.amount, it.text))
                                .map_err(Error::database(what))?,
                            None => return Err(rows.no_row()),
                        };
                        true
                    }
                    None => false,
                };
            }
        }
        transaction.commit().map_err(Error::database(what))?;
        Ok(is_more)
    }

    fn read_all(&mut self, table: &str) -> Result<Content, rusqlite::Error> {
        let mut select = self
            .link
            .prepare(&format!("SELECT id, part, amount, text FROM {table}"))?;
        let mut found = select.query([])?;
        let (mut rows, mut sum, mut line) = (0, Sum::default(), Vec::new());
        while let Some(row) = found.next()? {
            line.clear();
            let text = match row.get_ref(3)? {
                ValueRef::Text(text) => std::str::from_utf8(text).unwrap_or_default(),
                _ => "",
            };
            let fields = Fields {
                id: row.get::<_, i64>(0)? as u64,
                part: row.get(1)?,
                amount: row.get(2)?,
                text,
            };
            write_row(fields, &mut line);
            rows += 1;
            sum.add(&line);
        }
        Ok(Content { rows, sum })
    }
}
