//! What the lock service remembers of a connection.

use std::time::Instant;

use concurve_latch::Section;

use crate::lock_table::entry::OwnerId;
use crate::locks::owners::Part;
use crate::locks::service::{LockService, ending_sessions};

/// The owners that a connection speaks for.
#[derive(Debug)]
pub struct LockSession {
    connection: u64,
    /// The engine, from 0, with which the connection dies.
    engine: usize,
    /// Its locks are taken for the last of them.
    speaking: Vec<(OwnerId, Part)>,
    /// Until when its request waits for a lock.
    pub waits_until: Option<Instant>,
}

impl LockSession {
    /// Of the connection of this number, which dies with this engine, from 0.
    pub fn new(connection: u64, engine: usize) -> Self {
        Self {
            connection,
            engine,
            speaking: Vec::new(),
            waits_until: None,
        }
    }

    /// The owner whose locks it takes: one of its own until it names another.
    pub fn owner(&mut self, service: &LockService) -> (OwnerId, Part) {
        match self.speaking.last() {
            Some(speaking) => *speaking,
            None => {
                let name = format!("client-{}", self.connection);
                self.speak_for(name.as_bytes(), Part::Dialog, service)
            }
        }
    }

    /// Takes locks for this owner from now on. It also goes on to speak for earlier owners that hold
    /// a lock: their dialog locks must not outlive the connection.
    pub fn speak_for(&mut self, name: &[u8], part: Part, service: &LockService) -> (OwnerId, Part) {
        let owner = {
            let mut owners = service.owners.lock();
            (owners.attach(name, part, self.engine), part)
        };
        let before = std::mem::take(&mut self.speaking);
        for (id, part) in before {
            if (id, part) == owner || !service.table.holds(id) {
                self.end_speaking(id, part, service);
            } else {
                self.speaking.push((id, part));
            }
        }
        self.speaking.push(owner);
        owner
    }

    /// How many owners it speaks for.
    pub fn owners(&self) -> usize {
        self.speaking.len()
    }

    /// The connection is lost: the dialog locks of its owners end, unless another connection speaks
    /// for them too.
    pub fn close(&mut self, service: &LockService) {
        for (id, part) in std::mem::take(&mut self.speaking) {
            self.end_speaking(id, part, service);
        }
    }

    fn end_speaking(&self, id: OwnerId, part: Part, service: &LockService) {
        let _section = Section::enter(ending_sessions());
        let is_last = service.owners.lock().detach(id, part, self.engine);
        if is_last {
            service.end_part(id, part);
        }
    }
}
