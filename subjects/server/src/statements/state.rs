//! The state of the statement service: what all sessions share, and what a connection has prepared,
//! with how it executes that.

use std::ops::RangeInclusive;

use concurve_latch::{Class, Section};
use concurve_records::Session;
use concurve_statements::{Answer, CacheOptions, SessionOptions, Statements, Value};
use hashbrown::HashMap;

use super::catalogue::{Catalogue, View, check_name};
use super::files::{Opened, RecordFiles};
use super::refusal::Refusal;
use crate::error::Error;
use crate::records::RecordService;

/// Most statements that a connection may have prepared.
pub const PREPARED_MAX: usize = 1000;

/// The caches of statements and their plans, the catalogue, and the records below.
#[derive(Debug)]
pub struct StatementService {
    pub statements: Statements,
    pub catalogue: Catalogue,
    pub records: RecordService,
    /// The section in which a plan is in use: the plan and its pages are lost if the engine dies.
    executing: Class,
}

impl StatementService {
    /// Reads which files there are.
    ///
    /// # Errors
    /// If the records cannot be read.
    pub fn open(caches: &CacheOptions, records: RecordService) -> Result<Self, Error> {
        let catalogue = Catalogue::open(&records.engine);
        Ok(Self {
            statements: Statements::new(caches),
            catalogue: catalogue.map_err(|fault| Error::RecordsStopped(fault.to_string()))?,
            records,
            executing: Class::named("statement in execution"),
        })
    }
}

/// The statements of one connection.
#[derive(Debug, Default)]
pub struct Client {
    /// Texts by name. Each execution searches for the plan, because the cache may have dropped it.
    prepared: HashMap<Box<[u8]>, Box<str>>,
    executor: Executor,
    /// A statement of its transaction was refused.
    pub has_failed: bool,
    /// The answer that follows when the transaction is durable.
    pub answer: Option<Answer>,
    /// The values of a statement; kept so that their memory is used again.
    pub values: Vec<Value>,
}

/// Executes statements, prepared or not.
#[derive(Debug, Default)]
struct Executor {
    options: SessionOptions,
    opened: Opened,
}

impl Client {
    /// The catalogue as its database sees it.
    pub fn view<'a>(&'a self, service: &'a StatementService) -> View<'a> {
        self.executor.view(service)
    }

    /// Sets the user; each user has plans of its own.
    ///
    /// # Errors
    /// If it is no name.
    pub fn set_user(&mut self, name: &str) -> Result<(), Refusal> {
        check_name(name, "a user")?;
        self.executor.options.user = name.to_owned();
        Ok(())
    }

    /// Sets the database of its files; empty: files without a database.
    ///
    /// # Errors
    /// If it is no name.
    pub fn set_database(&mut self, name: &str) -> Result<(), Refusal> {
        if !name.is_empty() {
            check_name(name, "a database")?;
        }
        self.executor.options.database = name.to_owned();
        Ok(())
    }

    /// Prepares a text under a name, and returns how many values it takes. Replaces an older text
    /// of this name.
    ///
    /// # Errors
    /// If the text is no statement, or too many are prepared.
    pub fn prepare(
        &mut self,
        service: &StatementService,
        engine: usize,
        name: &[u8],
        text: &str,
    ) -> Result<usize, Refusal> {
        if self.prepared.len() == PREPARED_MAX && !self.prepared.contains_key(name) {
            return Err(Refusal::Usage(format!(
                "{PREPARED_MAX} statements are prepared on this connection: DEALLOCATE some"
            )));
        }
        let view = self.view(service);
        let _section = Section::enter(service.executing);
        let plan = service
            .statements
            .plan(engine, text, &self.executor.options, &view)?;
        let parameters = plan.parameters;
        drop(plan);
        self.prepared.insert(name.into(), text.into());
        Ok(parameters)
    }

    /// Forgets a prepared statement.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn deallocate(&mut self, name: &[u8]) -> Result<(), Refusal> {
        match self.prepared.remove(name) {
            Some(_) => Ok(()),
            None => Err(no_statement(name)),
        }
    }

    /// Forgets them all; returns how many there were.
    pub fn deallocate_all(&mut self) -> usize {
        self.prepared.drain().count()
    }

    /// Executes a prepared statement with [`Client::values`].
    ///
    /// # Errors
    /// If there is none of this name; otherwise as [`Client::run`].
    pub fn execute(
        &mut self,
        service: &StatementService,
        engine: usize,
        name: &[u8],
        session: &mut Session,
    ) -> Result<Answer, Refusal> {
        let Some(text) = self.prepared.get(name) else {
            return Err(no_statement(name));
        };
        let (executor, values) = (&mut self.executor, &self.values);
        executor.execute(service, engine, text, values, session)
    }

    /// Executes a text with [`Client::values`].
    ///
    /// # Errors
    /// If it is no statement, takes other values, or the record engine refuses it.
    pub fn run(
        &mut self,
        service: &StatementService,
        engine: usize,
        text: &str,
        session: &mut Session,
    ) -> Result<Answer, Refusal> {
        let (executor, values) = (&mut self.executor, &self.values);
        executor.execute(service, engine, text, values, session)
    }

    /// Inserts records with these keys; the other fields are [`Client::values`].
    ///
    /// # Errors
    /// If there is no such file, it has other fields, or the record engine refuses it.
    pub fn fill(
        &mut self,
        service: &StatementService,
        name: &str,
        keys: RangeInclusive<Value>,
        session: &mut Session,
    ) -> Result<(), Refusal> {
        let file = self.view(service).file(name)?;
        let (wanted, given) = (file.fields.len(), self.values.len() + 1);
        if wanted != given {
            return Err(Refusal::Usage(format!(
                "file {name} has {wanted} fields ({}) and was given values for {given}",
                file.fields.join(", ")
            )));
        }
        let mut files = self.executor.files(service, session);
        files.fill(file.id, keys, &self.values)
    }
}

impl Executor {
    fn view<'a>(&'a self, service: &'a StatementService) -> View<'a> {
        View {
            catalogue: &service.catalogue,
            database: &self.options.database,
        }
    }

    fn files<'a>(
        &'a mut self,
        service: &'a StatementService,
        session: &'a mut Session,
    ) -> RecordFiles<'a> {
        RecordFiles {
            catalogue: &service.catalogue,
            session,
            opened: &mut self.opened,
        }
    }

    fn execute(
        &mut self,
        service: &StatementService,
        engine: usize,
        text: &str,
        values: &[Value],
        session: &mut Session,
    ) -> Result<Answer, Refusal> {
        let view = self.view(service);
        let _section = Section::enter(service.executing);
        let plan = service
            .statements
            .plan(engine, text, &self.options, &view)?;
        plan.execute(values, &mut self.files(service, session))
    }
}

fn no_statement(name: &[u8]) -> Refusal {
    let name = &name[..name.len().min(64)];
    Refusal::NoStatement(String::from_utf8_lossy(name).into_owned())
}
