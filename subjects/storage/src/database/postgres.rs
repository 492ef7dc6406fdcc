//! PostgreSQL: `COPY` in a transaction for each table, `CHECKPOINT` as savepoint.

use std::io::{BufRead, Write};

use postgres::{Client, NoTls};

use super::session::{Database, DatabaseSession};
use crate::error::Error;
use crate::export::{Content, Export, Sum};

/// Bytes sent to the server at a time.
const BUFFER_BYTES: usize = 64 << 10;

pub struct Postgres {
    address: String,
}

impl Postgres {
    /// # Errors
    /// If no server answers, or the user has no right to make checkpoints.
    pub fn new(address: &str) -> Result<Self, Error> {
        let postgres = Self::at(address);
        postgres.client()?.savepoint()?;
        Ok(postgres)
    }

    /// A server that was checked before.
    pub fn at(address: &str) -> Self {
        Self {
            address: address.to_owned(),
        }
    }

    fn client(&self) -> Result<PostgresSession, Error> {
        let client = Client::connect(&self.address, NoTls).map_err(Error::database(|| {
            format!("cannot connect to {}", self.address)
        }))?;
        Ok(PostgresSession { client })
    }
}

impl Database for Postgres {
    fn connect(&self, _loader: usize) -> Result<Box<dyn DatabaseSession + '_>, Error> {
        Ok(Box::new(self.client()?))
    }
}

struct PostgresSession {
    client: Client,
}

impl DatabaseSession for PostgresSession {
    fn load(&mut self, table: &str, rows: &mut Export) -> Result<(), Error> {
        let what = || format!("cannot load table {table}");
        let create = format!(
            "CREATE TABLE {table} (id bigint PRIMARY KEY, part integer NOT NULL, \
             amount bigint NOT NULL, text text NOT NULL)"
        );
        let mut transaction = self.client.transaction().map_err(Error::database(what))?;
        transaction
            .batch_execute(&create)
            .map_err(Error::database(what))?;
        let copy = format!("COPY {table} FROM STDIN");
        let mut copying = transaction.copy_in(&copy).map_err(Error::database(what))?;
        let mut lines = Vec::with_capacity(BUFFER_BYTES);
        while let Some(line) = rows.next_row()? {
            lines.extend_from_slice(line);
            lines.push(b'\n');
            if lines.len() >= BUFFER_BYTES {
                copying.write_all(&lines).map_err(Error::database(what))?;
                lines.clear();
            }
        }
        copying.write_all(&lines).map_err(Error::database(what))?;
        copying.finish().map_err(Error::database(what))?;
        transaction.commit().map_err(Error::database(what))
    }

    fn savepoint(&mut self) -> Result<(), Error> {
        self.client
            .batch_execute("CHECKPOINT")
            .map_err(Error::database(|| "cannot make a checkpoint".to_owned()))
    }

    fn count(&mut self, table: &str) -> Result<u64, Error> {
        let query = format!("SELECT count(*) FROM {table}");
        let row = self.client.query_one(&query, &[]);
        let row = row.map_err(Error::database(|| format!("cannot count table {table}")))?;
        Ok(row.get::<_, i64>(0) as u64)
    }

    fn read(&mut self, table: &str) -> Result<Content, Error> {
        let what = || format!("cannot read table {table}");
        let copy = format!("COPY {table} TO STDOUT");
        let mut lines = self.client.copy_out(&copy).map_err(Error::database(what))?;
        let (mut rows, mut sum, mut line) = (0, Sum::default(), Vec::new());
        loop {
            line.clear();
            if lines
                .read_until(b'\n', &mut line)
                .map_err(Error::database(what))?
                == 0
            {
                return Ok(Content { rows, sum });
            }
            rows += 1;
            sum.add(line.strip_suffix(b"\n").unwrap_or(&line));
        }
    }
}
