//! The record engine of document 004, in the client's own process.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
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

pub const FORMS: &str = "records:FOLDER?latching=record|file|global&durability=group|each|none&cache_mib=N&checkpoints=background|foreground&checkpoint_mib=N";

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
/// Who makes checkpoints: a thread of the engine, or the sessions between their transactions.
const CHECKPOINTS: [(&str, Checkpoints); 2] = [
    ("background", Checkpoints::Background),
    ("foreground", Checkpoints::Foreground),
];
const CACHE_MIB: usize = 256;
/// A session looks after so many operations whether a checkpoint is due: to look takes the log's latch.
const OPERATIONS_BETWEEN: u32 = 64;
const POISONED: &str = "a thread panicked while it opened or closed the engine";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Checkpoints {
    Background,
    Foreground,
}

/// The folder of the records, and the settings of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordsAddress {
    folder: PathBuf,
    latching: &'static str,
    durability: &'static str,
    cache_mib: usize,
    checkpoints: &'static str,
    /// `None`: the engine chooses the distance of checkpoints.
    checkpoint_mib: Option<usize>,
}

impl RecordsAddress {
    /// Parses what follows `records:`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut query = Query::parse(text)?;
        Ok(Self {
            latching: query.one_of("latching", &LATCHINGS.map(|it| it.0))?,
            durability: query.one_of("durability", &DURABILITIES.map(|it| it.0))?,
            cache_mib: query.number("cache_mib", CACHE_MIB)?,
            checkpoints: query.one_of("checkpoints", &CHECKPOINTS.map(|it| it.0))?,
            checkpoint_mib: query.number_if_given("checkpoint_mib")?,
            folder: query.end()?,
        })
    }

    fn name(&self) -> String {
        let Self {
            folder,
            latching,
            durability,
            cache_mib,
            checkpoints,
            checkpoint_mib,
        } = self;
        let folder = folder.display();
        let distance = checkpoint_mib.map_or_else(Self::default_distance, |it| it.to_string());
        format!(
            "records:{folder}?latching={latching}&durability={durability}&cache_mib={cache_mib}\
             &checkpoints={checkpoints}&checkpoint_mib={distance}"
        )
    }

    fn default_distance() -> String {
        let options = EngineOptions::default();
        let least = options.checkpoint_bytes >> 20;
        format!("{least}..{}", least * options.checkpoint_stretch)
    }

    fn settings(&self) -> EngineOptions {
        EngineOptions {
            latching: named(&LATCHINGS, self.latching),
            durability: named(&DURABILITIES, self.durability),
            cache_pages: (self.cache_mib << 20) / records::page::PAGE_BYTES,
            ..self.distance()
        }
    }

    /// How far apart checkpoints are: exactly so far as the address says, if it says so.
    fn distance(&self) -> EngineOptions {
        let chosen = self.checkpoint_mib.map(|it| (it << 20) as u64);
        chosen.map_or_else(EngineOptions::default, EngineOptions::with_checkpoint_bytes)
    }

    /// Opens an engine that exists, with a thread that makes its checkpoints.
    fn open(&self) -> Result<records::Engine, EngineError> {
        self.check()?;
        self.create()
    }

    /// Opens an engine that exists, for sessions that may have to make its checkpoints themselves.
    fn open_for_sessions(&self) -> Result<records::Engine, EngineError> {
        self.check()?;
        match named(&CHECKPOINTS, self.checkpoints) {
            Checkpoints::Background => self.create(),
            Checkpoints::Foreground => {
                let opened = records::Engine::open_shared(&self.folder, self.settings());
                Ok(opened.map_err(|fault| self.failed(&fault))?.0)
            }
        }
    }

    fn check(&self) -> Result<(), EngineError> {
        match self.folder.join(records::CONTROL_FILE).is_file() {
            true => Ok(()),
            false => Err(self.failed(&"there are no records in this folder")),
        }
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
            engine: Mutex::new(Some(Arc::new(self.address.open_for_sessions()?))),
            making: Arc::new(AtomicBool::new(false)),
            statements,
        }))
    }
}

#[derive(Debug)]
struct Open {
    address: RecordsAddress,
    /// `None` after it is closed.
    engine: Mutex<Option<Arc<records::Engine>>>,
    /// A session is making a checkpoint.
    making: Arc<AtomicBool>,
    statements: Vec<Vec<Prepared>>,
}

/// The part of a session in checkpoints that are made in the foreground.
struct Foreground {
    engine: Arc<records::Engine>,
    making: Arc<AtomicBool>,
    operations: u32,
}

impl Foreground {
    /// To be called when the session has no open transaction.
    fn operation_ended(&mut self) {
        self.operations += 1;
        if !self.operations.is_multiple_of(OPERATIONS_BETWEEN) || self.making.swap(true, Acquire) {
            return;
        }
        // If it fails the engine has stopped, and every later statement fails.
        let _ = self.engine.do_due_work();
        self.making.store(false, Release);
    }
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
        let engine = self.engine.lock().expect(POISONED).clone();
        let engine = engine.ok_or_else(|| self.address.failed(&"it is closed"))?;
        let session = engine.session();
        let foreground = match named(&CHECKPOINTS, self.address.checkpoints) {
            Checkpoints::Background => None,
            Checkpoints::Foreground => Some(Foreground {
                engine,
                making: Arc::clone(&self.making),
                operations: 0,
            }),
        };
        run(&mut Session {
            client: command::Client::new(session),
            foreground,
            statements: self.statements[number as usize % self.statements.len()].clone(),
        });
        Ok(())
    }

    fn close(&self) -> Result<(), EngineError> {
        let Some(engine) = self.engine.lock().expect(POISONED).take() else {
            return Ok(());
        };
        let Some(engine) = Arc::into_inner(engine) else {
            return Err(self.address.failed(&"a session still uses it"));
        };
        let closed = engine.close();
        closed.map_err(|fault: Fault| self.address.failed(&fault))
    }
}

struct Session {
    client: command::Client,
    foreground: Option<Foreground>,
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
        if let Some(foreground) = &mut self.foreground
            && !self.client.session().in_transaction()
        {
            foreground.operation_ended();
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

#[cfg(test)]
mod tests {
    use super::*;
    use concurve_records::{FileDefinition, Key, SegmentKind};

    fn address(folder: &tempfile::TempDir, settings: &str) -> RecordsAddress {
        let folder = folder.path().display();
        RecordsAddress::parse(&format!("{folder}?durability=none&{settings}")).unwrap()
    }

    /// Checkpoints that are made while a session inserts several MiB.
    fn made(address: &RecordsAddress, makes: bool) -> u64 {
        let engine = address.create().unwrap();
        let definition = FileDefinition {
            record_bytes: 100,
            keys: vec![Key::unique(0, 8, SegmentKind::Integer)],
        };
        engine.create_file("f", &definition).unwrap();
        engine.close().unwrap();
        let engine = Arc::new(address.open_for_sessions().unwrap());
        let before = engine.statistics().checkpoints;
        let mut session = engine.session();
        let file = session.open("f").unwrap();
        let mut foreground = Foreground {
            engine: Arc::clone(&engine),
            making: Arc::default(),
            operations: 0,
        };
        for number in 0..20_000_i64 {
            let mut record = [0; 100];
            record[..8].copy_from_slice(&number.to_le_bytes());
            session.insert(file, &record).unwrap();
            if makes {
                foreground.operation_ended();
            }
        }
        engine.statistics().checkpoints - before
    }

    #[test]
    fn in_the_foreground_nobody_but_the_sessions_makes_checkpoints() {
        for makes in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let address = address(&folder, "checkpoints=foreground&checkpoint_mib=1");
            assert_eq!(made(&address, makes) > 0, makes);
        }
    }

    #[test]
    fn a_distance_of_checkpoints_that_was_chosen_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let distance = |query: &str| {
            let settings = address(&folder, query).settings();
            (settings.checkpoint_bytes >> 20, settings.checkpoint_stretch)
        };
        assert_eq!(distance("cache_mib=8"), (64, 4));
        assert_eq!(distance("checkpoint_mib=64"), (64, 1));
        assert_eq!(distance("checkpoint_mib=7"), (7, 1));
    }

    #[test]
    fn settings_are_part_of_the_name_and_checked() {
        let folder = tempfile::tempdir().unwrap();
        let name = address(&folder, "checkpoints=foreground").name();
        assert!(
            name.ends_with("&checkpoints=foreground&checkpoint_mib=64..256"),
            "{name}"
        );
        let name = address(&folder, "checkpoint_mib=64").name();
        assert!(name.ends_with("&checkpoint_mib=64"), "{name}");
        for wrong in ["checkpoints=never", "checkpoint_mib=0"] {
            assert!(
                RecordsAddress::parse(&format!("x?{wrong}")).is_err(),
                "{wrong}"
            );
        }
    }
}
