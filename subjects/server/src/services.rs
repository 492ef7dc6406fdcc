//! The state of the services, which all engines share.

use concurve_records::Checkpointer;

use crate::error::Error;
use crate::keys::KeyService;
use crate::locks::service::LockService;
use crate::logins::LoginService;
use crate::monitor::meter::Meter;
use crate::options::ServerOptions;
use crate::records::RecordService;
use crate::statements::StatementService;

/// The services.
#[derive(Debug)]
pub struct Services {
    pub logins: LoginService,
    pub locks: LockService,
    pub keys: KeyService,
    /// The record engine, for the services that use it.
    pub data: Option<DataService>,
}

/// The record service, or the statement service on top of the record engine.
#[derive(Debug)]
pub enum DataService {
    Records(RecordService),
    Statements(Box<StatementService>),
}

impl Services {
    /// Opens the service that the options select.
    ///
    /// # Errors
    /// If the backup file or the folder of the records cannot be used.
    pub fn open(options: &ServerOptions) -> Result<Self, Error> {
        let records = options.records.as_ref();
        let records = records.map(RecordService::open).transpose()?;
        let data = match (records, &options.statements) {
            (None, _) => None,
            (Some(records), None) => Some(DataService::Records(records)),
            (Some(records), Some(statements)) => {
                let caches = statements.caches(options.threads.engines());
                let service = StatementService::open(&caches, records)?;
                Some(DataService::Statements(Box::new(service)))
            }
        };
        let per_s = options.login.wrong_passwords_per_s;
        Ok(Self {
            logins: LoginService::new(options.password.clone(), per_s),
            locks: LockService::open(&options.locks, options.threads.engines())?,
            keys: KeyService::new(options.locks.capacity as usize),
            data,
        })
    }

    pub fn records(&self) -> Option<&RecordService> {
        match self.data.as_ref()? {
            DataService::Records(records) => Some(records),
            DataService::Statements(statements) => Some(&statements.records),
        }
    }

    pub fn statements(&self) -> Option<&StatementService> {
        match self.data.as_ref()? {
            DataService::Records(_) => None,
            DataService::Statements(statements) => Some(statements),
        }
    }

    /// Has this called once a service cannot continue, whichever thread or process has noticed it: also one
    /// that serves no client, such as that of the checkpoints.
    pub fn when_stopped(&self, call: impl Fn() + Send + Sync + 'static) {
        if let Some(records) = self.records() {
            records.engine.when_stopped(call);
        }
    }

    /// Fails if a service cannot continue.
    ///
    /// # Errors
    /// Why it has stopped.
    pub fn check(&self) -> Result<(), Error> {
        self.records().map_or(Ok(()), RecordService::check)
    }

    /// Starts the threads of services, until the result is dropped.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn start_threads(&self) -> Result<Option<Checkpointer>, Error> {
        let records = self.records();
        records.map(RecordService::start_checkpointer).transpose()
    }

    /// Whether some recorded locks are not durable yet: no reply may be sent then.
    pub fn has_pending_notes(&self) -> bool {
        let backup = self.locks.backup.as_ref();
        backup.is_some_and(|it| it.is_pending())
    }

    /// Makes all recorded locks durable. No reply may be sent before.
    ///
    /// # Errors
    /// If that fails. No further request may be answered: the server must stop.
    pub fn commit(&self, meter: &Meter) -> Result<(), Error> {
        let backup = self.locks.backup.as_ref();
        backup.map_or(Ok(()), |it| Ok(it.commit(meter)?))
    }

    /// Ends the sessions of the connections of an engine, from 0, that died.
    pub fn end_sessions_of(&self, engine: usize) {
        if let Some(records) = self.records() {
            records.engine.end_sessions_of(engine as u32 + 1);
        }
        self.locks.end_sessions_of(engine);
    }

    /// Closes the services in order.
    ///
    /// # Errors
    /// If one of them has stopped before, or cannot be closed.
    pub fn close(self) -> Result<(), Error> {
        if let Some(backup) = self.locks.backup {
            backup.end();
        }
        match self.data {
            None => Ok(()),
            Some(DataService::Records(records)) => records.close(),
            Some(DataService::Statements(statements)) => statements.records.close(),
        }
    }
}
