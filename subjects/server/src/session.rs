//! The state of a connection between its requests.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use concurve_records::Waiting;
use concurve_records::command::Client;

use crate::locks::session::LockSession;
use crate::resp::writer::Version;
use crate::services::Services;
use crate::source::Source;
use crate::statements;

/// The state of a connection, for its commands. One thread owns it at a time.
#[derive(Debug)]
pub struct Session {
    pub id: u64,
    /// Where its client comes from.
    pub source: Source,
    pub version: Version,
    pub authenticated: bool,
    /// The same, for its connection: the reply to the login may be sent while the session is still
    /// on its way back.
    shown: Arc<AtomicBool>,
    pub wrong_passwords: u32,
    /// Requests before the login that were refused or did nothing.
    pub refused_before_login: u32,
    pub name: Box<[u8]>,
    pub locks: LockSession,
    /// Its session of the record engine, once it has logged in.
    pub records: Option<Client>,
    /// Its prepared statements, once it has logged in.
    pub statements: Option<statements::Client>,
    /// What its session of the record engine does if it must wait.
    waiting: OnWait,
}

/// What a session of the record engine does if it must wait.
#[derive(Clone, Default)]
struct OnWait(Waiting);

impl std::fmt::Debug for OnWait {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.write_str("OnWait")
    }
}

impl Session {
    /// The session of the connection with this number, which the death of this engine, from 0,
    /// ends.
    pub fn new(id: u64, engine: usize, source: Source, services: &Services) -> Self {
        let mut session = Self {
            id,
            source,
            version: Version::default(),
            authenticated: false,
            shown: Arc::default(),
            wrong_passwords: 0,
            refused_before_login: 0,
            name: Box::default(),
            locks: LockSession::new(id, engine),
            records: None,
            statements: None,
            waiting: OnWait::default(),
        };
        if !services.logins.needs_password() {
            session.authenticate();
            session.begin(services);
        }
        session
    }

    /// Lets its client in. To be called before the reply is written.
    pub fn authenticate(&mut self) {
        self.authenticated = true;
        self.shown.store(true, Relaxed);
    }

    /// Whether its client has been let in, for those that do not own the session.
    pub fn login(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.shown)
    }

    /// Sets the function that is called when a parked request can continue. To be called before the
    /// first request.
    pub fn on_wakeup(&mut self, call: impl Fn() + Send + Sync + 'static) {
        self.waiting = OnWait(Waiting::Parks(Arc::new(call)));
        if let Some(client) = &mut self.records {
            client.session().set_waiting(self.waiting.0.clone());
        }
    }

    /// Opens what a client needs that has logged in: before that, it reaches no engine.
    pub fn begin(&mut self, services: &Services) {
        self.records = services.records().map(|service| {
            let mut client = Client::new(service.engine.session());
            client.session().set_waiting(self.waiting.0.clone());
            client
        });
        self.statements = services.statements().map(|_| statements::Client::default());
    }

    /// The connection is lost: its transaction is aborted, and its dialog locks end.
    pub fn close(&mut self, services: &Services) {
        self.records = None; // aborts
        self.locks.close(&services.locks);
    }
}
