//! The record engine of document 004, in the client's own process.

mod desk;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use concurve_records as records;
use concurve_records::command::{self, Command, Refusal, Reply};
use concurve_records::{Durability, EngineOptions, Fault, Latching, Status};

use super::query::Query;
use super::words::{Words, by_set};
use super::{Embedded, Engine, EngineError, EngineSession, INIT_REMEDY};
use crate::workload::words::Word;
use crate::workload::{Answer, Numbers, Workload};

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

/// Where the records are, and how they are to be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    folder: PathBuf,
    latching: &'static str,
    durability: &'static str,
    cache_mib: usize,
}

impl Address {
    /// Reads what follows `records:`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut query = Query::parse(text)?;
        Ok(Self {
            latching: query.one_of("latching", &LATCHINGS.map(|it| it.0))?,
            durability: query.one_of("durability", &DURABILITIES.map(|it| it.0))?,
            cache_mib: query.number("cache_mib", CACHE_MIB)?,
            folder: query.end()?,
        })
    }

    fn place(&self) -> String {
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

    /// Opens an engine that is there.
    fn open(&self) -> Result<records::Engine, EngineError> {
        if !self.folder.join(records::CONTROL_FILE).is_file() {
            return Err(self.failed(&"there are no records in this folder"));
        }
        self.create()
    }

    /// Opens it, or makes it if it is not there.
    fn create(&self) -> Result<records::Engine, EngineError> {
        let opened = records::Engine::open(&self.folder, self.settings());
        let (engine, _) = opened.map_err(|fault| self.failed(&fault))?;
        Ok(engine)
    }

    fn failed(&self, why: &impl ToString) -> EngineError {
        EngineError {
            place: self.place(),
            why: why.to_string(),
            remedy: INIT_REMEDY,
        }
    }
}

fn named<T: Copy>(all: &[(&str, T)], name: &str) -> T {
    let found = all.iter().find(|it| it.0 == name);
    found.expect("only these names are taken").1
}

/// The engine with the statements of a workload.
#[derive(Debug)]
pub struct Records {
    address: Address,
    /// By set.
    statements: Vec<Vec<Vec<Word>>>,
}

impl Records {
    pub fn new(address: Address, workload: &dyn Workload) -> Self {
        Self {
            address,
            statements: by_set(workload),
        }
    }
}

impl Embedded for Records {
    fn place(&self) -> String {
        self.address.place()
    }

    fn refuses_processes(&self) -> Option<&'static str> {
        Some("the record engine lives in one process: take threads, or concurve-server")
    }

    fn open(&self) -> Result<Arc<dyn Engine>, EngineError> {
        let prepare = |words: &Vec<Word>| {
            let words = Words(words.clone());
            let command = Command::parse(&words)?;
            Ok(Prepared { command, words })
        };
        let set = |set: &Vec<Vec<Word>>| set.iter().map(prepare).collect();
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
    address: Address,
    /// None when it is closed.
    engine: Mutex<Option<records::Engine>>,
    statements: Vec<Vec<Prepared>>,
}

/// A statement, and its words with the numbers of the last transaction.
#[derive(Debug, Clone)]
struct Prepared {
    command: Command,
    words: Words,
}

impl Engine for Open {
    fn session(
        &self,
        number: u64,
        life: &mut dyn FnMut(&mut dyn EngineSession),
    ) -> Result<(), EngineError> {
        let session = {
            let engine = self.engine.lock().expect(POISONED);
            let engine = engine.as_ref();
            engine
                .ok_or_else(|| self.address.failed(&"it is closed"))?
                .session()
        };
        life(&mut Session {
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
    fn execute(&mut self, statements: Range<usize>, numbers: &Numbers) -> Answer {
        let mut answer = Answer::Nothing;
        for Prepared { command, words } in &mut self.statements[statements] {
            words.0.iter_mut().for_each(|word| word.fill(numbers));
            answer = match self.client.execute(command, words) {
                Ok(Reply::Field(_, number) | Reply::Number(number)) => Answer::Done(Some(number)),
                Ok(_) => Answer::Done(None),
                Err(Refusal::Status(Status::KeyNotFound | Status::EndOfFile)) => Answer::Nothing,
                Err(refusal) => {
                    if self.client.session().in_transaction() {
                        // What cannot be undone has stopped the engine, and the next one is told.
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
