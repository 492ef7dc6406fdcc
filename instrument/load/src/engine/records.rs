//! The record engine of document 004, in the client's own process.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use concurve_records as records;
use concurve_records::command::{self, Command, Refusal, Reply};
use concurve_records::{Durability, EngineOptions, Fault, Latching, Status};

use super::interface::{EmbeddedEngine, EngineError, EngineSession, INIT_REMEDY, OpenEngine};
use super::query::Query;
use super::record_language::{Tokens, tokens_by_set};
use crate::admin::{AdminAccess, AdminConnection, AdminError};
use crate::stop::Stop;
use crate::workload::{Answer, Parameters, Token, Workload};

pub const FORMS: &str =
    "records:FOLDER?latching=record|file|global&durability=group|each|none&cache_mib=N";

const LATCHINGS: [(&str, Latching); 3] = [
    ("record", Latching::Record),
    ("file", Latching::File),
    ("global", Latching::Global),
];
const DURABILITIES: [(&str, Durability); 3] = [
    ("group", Durability::Group),
    ("each", Durability::Each),
    ("none", Durability::None),
];
const CACHE_MIB: usize = 256;
const POISONED: &str = "a thread panicked while it opened or closed the engine";

/// The folder of the records, and the settings of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordsAddress {
    folder: PathBuf,
    latching: &'static str,
    durability: &'static str,
    cache_mib: usize,
}

impl RecordsAddress {
    /// Parses what follows `records:`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut query = Query::parse(text)?;
        Ok(Self {
            latching: query.one_of("latching", &LATCHINGS.map(|it| it.0))?,
            durability: query.one_of("durability", &DURABILITIES.map(|it| it.0))?,
            cache_mib: query.number("cache_mib", CACHE_MIB)?,
            folder: query.end()?,
        })
    }

    fn name(&self) -> String {
        let Self {
            folder,
            latching,
            durability,
            cache_mib,
        } = self;
        let folder = folder.display();
        format!(
            "records:{folder}?latching={latching}&durability={durability}&cache_mib={cache_mib}"
        )
    }

    fn settings(&self) -> EngineOptions {
        EngineOptions {
            latching: named(&LATCHINGS, self.latching),
            durability: named(&DURABILITIES, self.durability),
            cache_pages: (self.cache_mib << 20) / records::page::PAGE_BYTES,
            ..EngineOptions::default()
        }
    }

    /// Opens an engine that exists.
    fn open(&self) -> Result<records::Engine, EngineError> {
        if !self.folder.join(records::CONTROL_FILE).is_file() {
            return Err(self.failed(&"there are no records in this folder"));
        }
        self.create()
    }

    /// Opens it, or makes it if it does not exist.
    fn create(&self) -> Result<records::Engine, EngineError> {
        let opened = records::Engine::open(&self.folder, self.settings());
        let (engine, _) = opened.map_err(|fault| self.failed(&fault))?;
        Ok(engine)
    }

    fn failed(&self, why: &impl ToString) -> EngineError {
        EngineError {
            engine: self.name(),
            why: why.to_string(),
            remedy: INIT_REMEDY,
        }
    }
}

fn named<T: Copy>(all: &[(&str, T)], name: &str) -> T {
    let found = all.iter().find(|it| it.0 == name);
    found.expect("parsing accepts only these names").1
}

/// The engine with the statements of a workload.
#[derive(Debug)]
pub struct RecordsEngine {
    address: RecordsAddress,
    /// By set.
    statements: Vec<Vec<Vec<Token>>>,
}

impl RecordsEngine {
    pub fn new(address: RecordsAddress, workload: &dyn Workload) -> Self {
        Self {
            address,
            statements: tokens_by_set(workload),
        }
    }
}

impl EmbeddedEngine for RecordsEngine {
    fn name(&self) -> String {
        self.address.name()
    }

    fn refuses_processes(&self) -> Option<&'static str> {
        Some("the record engine lives in one process: take threads, or concurve-server")
    }

    fn open(&self) -> Result<Arc<dyn OpenEngine>, EngineError> {
        let prepare = |tokens: &Vec<Token>| {
            let tokens = Tokens(tokens.clone());
            let command = Command::parse(&tokens)?;
            Ok(Prepared { command, tokens })
        };
        let set = |set: &Vec<Vec<Token>>| set.iter().map(prepare).collect();
        let statements: Result<Vec<Vec<Prepared>>, Refusal> =
            self.statements.iter().map(set).collect();
        let statements = statements.map_err(|it| self.address.failed(&it))?;
        Ok(Arc::new(Open {
            address: self.address.clone(),
            engine: Mutex::new(Some(self.address.open()?)),
            statements,
        }))
    }
}

#[derive(Debug)]
struct Open {
    address: RecordsAddress,
    /// `None` after it is closed.
    engine: Mutex<Option<records::Engine>>,
    statements: Vec<Vec<Prepared>>,
}

/// A statement, and its tokens with the parameters of the last transaction.
#[derive(Debug, Clone)]
struct Prepared {
    command: Command,
    tokens: Tokens,
}

impl OpenEngine for Open {
    fn session(
        &self,
        number: u64,
        run: &mut dyn FnMut(&mut dyn EngineSession),
    ) -> Result<(), EngineError> {
        let session = {
            let engine = self.engine.lock().expect(POISONED);
            let engine = engine.as_ref();
            engine
                .ok_or_else(|| self.address.failed(&"it is closed"))?
                .session()
        };
        run(&mut Session {
            client: command::Client::new(session),
            statements: self.statements[number as usize % self.statements.len()].clone(),
        });
        Ok(())
    }

    fn close(&self) -> Result<(), EngineError> {
        let engine = self.engine.lock().expect(POISONED).take();
        let closed = engine.map_or(Ok(()), records::Engine::close);
        closed.map_err(|fault: Fault| self.address.failed(&fault))
    }
}

struct Session {
    client: command::Client,
    statements: Vec<Prepared>,
}

impl EngineSession for Session {
    fn execute(&mut self, statements: Range<usize>, parameters: &Parameters) -> Answer {
        let mut answer = Answer::Nothing;
        for Prepared { command, tokens } in &mut self.statements[statements] {
            tokens.0.iter_mut().for_each(|it| it.fill(parameters));
            answer = match self.client.execute(command, tokens) {
                Ok(Reply::Field(_, number) | Reply::Number(number)) => Answer::Done(Some(number)),
                Ok(_) => Answer::Done(None),
                Err(Refusal::Status(Status::KeyNotFound | Status::EndOfFile)) => Answer::Nothing,
                Err(refusal) => {
                    if self.client.session().in_transaction() {
                        // If the abort fails the engine has stopped, and every later statement fails.
                        let _ = self.client.session().abort();
                    }
                    return Answer::Error(refusal.word().to_owned());
                }
            };
        }
        answer
    }

    fn waits(&self) -> u64 {
        self.client.lock_waits()
    }
}

impl AdminAccess for RecordsAddress {
    fn open(&self, create: bool, _stop: &Stop) -> Result<Box<dyn AdminConnection>, AdminError> {
        let engine = match create {
            true => self.create()?,
            false => RecordsAddress::open(self)?,
        };
        Ok(Box::new(RecordsAdmin {
            client: Some(command::Client::new(engine.session())),
            engine: Some(engine),
        }))
    }
}

/// Both are `Some` until it is dropped.
struct RecordsAdmin {
    client: Option<command::Client>,
    engine: Option<records::Engine>,
}

impl AdminConnection for RecordsAdmin {
    fn execute(&mut self, statement: &str) -> Result<Option<i64>, AdminError> {
        let words: Vec<&[u8]> = statement.split(' ').map(str::as_bytes).collect();
        let client = self.client.as_mut().expect("it is taken when dropped");
        let answered = Command::parse(&words[..]);
        let answered = answered.and_then(|command| match client.execute(&command, &words[..]) {
            Ok(Reply::Field(_, number) | Reply::Number(number)) => Ok(Some(number)),
            Err(Refusal::Status(Status::KeyNotFound | Status::EndOfFile)) | Ok(_) => Ok(None),
            Err(refusal) => Err(refusal),
        });
        answered.map_err(|refusal| AdminError::refused(statement, refusal.to_string()))
    }
}

impl Drop for RecordsAdmin {
    fn drop(&mut self) {
        drop(self.client.take());
        if let Some(engine) = self.engine.take() {
            // Changes that could not be written are in the log; opening the engine again recovers them
            // or reports the fault.
            let _ = engine.close();
        }
    }
}
