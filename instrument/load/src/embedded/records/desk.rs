//! The records' desk: the engine for oneself, before a load and after it.

use concurve_records::Engine;
use concurve_records::Status;
use concurve_records::command::{Client, Command, Refusal, Reply};

use super::Address;
use crate::desk::{Desk, DeskError, Desks};
use crate::error::Error;
use crate::stop::Stop;

impl Desks for Address {
    fn open(&self, create: bool, _stop: &Stop) -> Result<Box<dyn Desk>, Error> {
        let engine = match create {
            true => self.create()?,
            false => Address::open(self)?,
        };
        Ok(Box::new(RecordsDesk {
            client: Some(Client::new(engine.session())),
            engine: Some(engine),
        }))
    }
}

/// Both are there until it is dropped.
struct RecordsDesk {
    client: Option<Client>,
    engine: Option<Engine>,
}

impl Desk for RecordsDesk {
    fn ask(&mut self, statement: &str) -> Result<Option<i64>, DeskError> {
        let words: Vec<&[u8]> = statement.split(' ').map(str::as_bytes).collect();
        let client = self.client.as_mut().expect("it is there until the end");
        let answered = Command::parse(&words[..]);
        let answered = answered.and_then(|command| match client.execute(&command, &words[..]) {
            Ok(Reply::Field(_, number) | Reply::Number(number)) => Ok(Some(number)),
            Err(Refusal::Status(Status::KeyNotFound | Status::EndOfFile)) | Ok(_) => Ok(None),
            Err(refusal) => Err(refusal),
        });
        answered.map_err(|refusal| DeskError::refused(statement, refusal.to_string()))
    }
}

impl Drop for RecordsDesk {
    fn drop(&mut self) {
        drop(self.client.take());
        if let Some(engine) = self.engine.take() {
            // What it could not write is in the log, and the next one that opens it is told.
            let _ = engine.close();
        }
    }
}
