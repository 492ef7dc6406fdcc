//! The state of a connection in the lock service.

use std::time::Instant;

use concurve_latch::Section;

use crate::lock_table::entry::OwnerId;
use crate::locks::owners::Part;
use crate::locks::service::{LockService, ending_sessions};

/// The owners for which a connection acts.
#[derive(Debug)]
pub struct LockSession {
    connection: u64,
    /// The engine, from 0, whose death ends the connection.
    engine: usize,
    /// The connection takes locks for the last of them.
    acting_for: Vec<(OwnerId, Part)>,
    /// Until when its request waits for a lock.
    pub waits_until: Option<Instant>,
}

impl LockSession {
    /// For the connection with this number, which the death of this engine, from 0, ends.
    pub fn new(connection: u64, engine: usize) -> Self {
        Self {
            connection,
            engine,
            acting_for: Vec::new(),
            waits_until: None,
        }
    }

    /// The owner for which it takes locks: an owner of its own until the client names another one.
    pub fn owner(&mut self, service: &LockService) -> (OwnerId, Part) {
        match self.acting_for.last() {
            Some(acting_for) => *acting_for,
            None => {
                let name = format!("client-{}", self.connection);
                self.act_for(name.as_bytes(), Part::Dialog, service)
            }
        }
    }

    /// Takes locks for this owner from now on. It continues to act for earlier owners that hold a
    /// lock, because their dialog locks must not outlive the connection.
    pub fn act_for(&mut self, name: &[u8], part: Part, service: &LockService) -> (OwnerId, Part) {
        let owner = {
            let mut owners = service.owners.lock();
            (owners.attach(name, part, self.engine), part)
        };
        let before = std::mem::take(&mut self.acting_for);
        for (id, part) in before {
            if (id, part) == owner || !service.table.holds(id) {
                self.stop_acting(id, part, service);
            } else {
                self.acting_for.push((id, part));
            }
        }
        self.acting_for.push(owner);
        owner
    }

    /// The number of owners for which it acts.
    pub fn owners(&self) -> usize {
        self.acting_for.len()
    }

    /// The connection is lost: the dialog locks of its owners end, unless another connection acts
    /// for them too.
    pub fn close(&mut self, service: &LockService) {
        for (id, part) in std::mem::take(&mut self.acting_for) {
            self.stop_acting(id, part, service);
        }
    }

    fn stop_acting(&self, id: OwnerId, part: Part, service: &LockService) {
        let _section = Section::enter(ending_sessions());
        let is_last = service.owners.lock().detach(id, part, self.engine);
        if is_last {
            service.end_part(id, part);
        }
    }
}
