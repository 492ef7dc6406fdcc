//! The state of a connection between its requests.

use std::sync::Arc;

use concurve_records::Waiting;
use concurve_records::command::Client;

use crate::locks::session::LockSession;
use crate::resp::writer::Version;
use crate::services::Services;
use crate::statements;

/// The state of a connection, for its commands. One thread owns it at a time.
#[derive(Debug)]
pub struct Session {
    pub id: u64,
    pub version: Version,
    pub authenticated: bool,
    pub failed_attempts: u32,
    pub name: Box<[u8]>,
    pub locks: LockSession,
    /// Its session of the record engine.
    pub records: Option<Client>,
    /// Its prepared statements.
    pub statements: Option<statements::Client>,
}

impl Session {
    /// The session of the connection with this number, which the death of this engine, from 0,
    /// ends.
    pub fn new(id: u64, engine: usize, needs_password: bool, services: &Services) -> Self {
        let records = services.records();
        let statements = services.statements();
        Self {
            id,
            version: Version::default(),
            authenticated: !needs_password,
            failed_attempts: 0,
            name: Box::default(),
            locks: LockSession::new(id, engine),
            records: records.map(|it| Client::new(it.engine.session())),
            statements: statements.map(|_| statements::Client::default()),
        }
    }

    /// Sets the function that is called when a parked request can continue. To be called before the
    /// first request.
    pub fn on_wakeup(&mut self, call: impl Fn() + Send + Sync + 'static) {
        if let Some(client) = &mut self.records {
            client.session().set_waiting(Waiting::Parks(Arc::new(call)));
        }
    }

    /// The connection is lost: its transaction is aborted, and its dialog locks end.
    pub fn close(&mut self, services: &Services) {
        self.records = None; // aborts
        self.locks.close(&services.locks);
    }
}
