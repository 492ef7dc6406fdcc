//! What the server remembers of a connection between its requests.

use std::sync::Arc;
use std::time::Instant;

use concurve_latch::{Class, Section};
use concurve_records::Waiting;
use concurve_records::command::Client;

use crate::hall::{Hall, Notes};
use crate::locks::entry::OwnerId;
use crate::locks::mode::Scope;
use crate::locks::owners::Part;
use crate::resp::writer::Version;
use crate::statements;

#[derive(Debug)]
pub struct Session {
    pub id: u64,
    /// The engine, from 0, with which its connection dies: see [`Hall::home`].
    home: usize,
    pub version: Version,
    pub authenticated: bool,
    pub failed_attempts: u32,
    pub name: Box<[u8]>,
    /// For whom it takes locks now; the last of those it speaks for.
    speaking: Vec<(OwnerId, Part)>,
    /// Until when its request waits for a lock.
    pub waits_until: Option<Instant>,
    /// Its session of the record engine.
    pub records: Option<Client>,
    /// What it has prepared.
    pub statements: Option<statements::Client>,
}

impl Session {
    pub fn new(id: u64, hall: &Hall, home: usize) -> Self {
        Self {
            id,
            home,
            version: Version::default(),
            authenticated: hall.settings.password.is_none(),
            failed_attempts: 0,
            name: Box::default(),
            speaking: Vec::new(),
            waits_until: None,
            records: hall
                .records
                .as_ref()
                .map(|it| Client::new(it.engine.session())),
            statements: hall
                .statements
                .as_ref()
                .map(|_| statements::Client::default()),
        }
    }

    /// Says how it is called when it can go on; before its first request.
    pub fn call_by(&mut self, waker: impl Fn() + Send + Sync + 'static) {
        if let Some(client) = &mut self.records {
            client
                .session()
                .set_waiting(Waiting::Parks(Arc::new(waker)));
        }
    }

    /// The owner it takes locks for: one of its own until it names another.
    pub fn owner(&mut self, hall: &Hall) -> (OwnerId, Part) {
        match self.speaking.last() {
            Some(speaking) => *speaking,
            None => {
                let name = format!("client-{}", self.id);
                self.speak_for(name.as_bytes(), Part::Dialog, hall)
            }
        }
    }

    /// Takes locks for this owner from now on. Owners that it spoke for before stay with it as long
    /// as they hold something: their dialog locks must not outlive the connection.
    pub fn speak_for(&mut self, name: &[u8], part: Part, hall: &Hall) -> (OwnerId, Part) {
        let owner = {
            let mut owners = hall.owners.lock();
            (owners.attach(name, part, self.home), part)
        };
        let before = std::mem::take(&mut self.speaking);
        for (id, part) in before {
            if (id, part) == owner || !hall.locks.holds(id) {
                self.end_speaking(id, part, hall);
            } else {
                self.speaking.push((id, part));
            }
        }
        self.speaking.push(owner);
        owner
    }

    /// The connection is lost: the dialog locks of its owners end, unless another connection speaks
    /// for them too.
    pub fn close(&mut self, hall: &Hall) {
        self.records = None; // aborts its transaction
        for (id, part) in std::mem::take(&mut self.speaking) {
            self.end_speaking(id, part, hall);
        }
    }

    fn end_speaking(&self, id: OwnerId, part: Part, hall: &Hall) {
        let _whole = Section::enter(Class::named("ending sessions"));
        let is_last = hall.owners.lock().detach(id, part, self.home);
        if is_last {
            end_part(hall, id, part);
        }
    }

    /// How many owners it speaks for.
    pub fn owners(&self) -> usize {
        self.speaking.len()
    }
}

/// Nobody speaks for this part of an owner any more.
pub fn end_part(hall: &Hall, id: OwnerId, part: Part) {
    let change = hall.owners.lock().change(id);
    if part == Part::Dialog {
        hall.locks.release_all(id, Scope::DIALOG, &mut Notes(hall));
    }
    if !hall.locks.holds(id) {
        hall.owners.lock().forget(id, change);
    }
}
