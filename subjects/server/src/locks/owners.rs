//! Owners by name, and the number of connections that act for each.

use hashbrown::HashMap;

use crate::lock_table::argument::Text;
use crate::lock_table::entry::OwnerId;
use crate::slab::Slab;

/// Owners. Each has a number as long as a connection acts for it or it holds a lock.
#[derive(Debug, Default)]
pub struct Owners {
    known: Slab<Owner>,
    by_name: HashMap<Box<[u8]>, OwnerId>,
    peak: usize,
    changes: u64,
}

#[derive(Debug)]
struct Owner {
    name: Text,
    /// The engines whose connections act for it.
    connections: Vec<OwnerConnections>,
    /// Number of the last change of `connections`.
    change: u64,
}

/// Connections of one engine that act for one part of an owner.
#[derive(Debug)]
struct OwnerConnections {
    engine: usize,
    part: Part,
    count: u32,
}

/// The part of an owner for which a connection acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Dialog,
    Update,
}

impl Owners {
    /// The number of the owner with this name; a new one if the name is new.
    pub fn intern(&mut self, name: &[u8]) -> OwnerId {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let id = self.known.insert(Owner {
            name: Text::new(name),
            connections: Vec::new(),
            change: 0,
        });
        self.by_name.insert(name.into(), id);
        self.peak = self.peak.max(self.known.len());
        id
    }

    pub fn find(&self, name: &[u8]) -> Option<OwnerId> {
        self.by_name.get(name).copied()
    }

    /// The name, or `?` if the owner was forgotten.
    pub fn name(&self, id: OwnerId) -> &[u8] {
        self.known.get(id).map_or(b"?", |it| it.name.as_bytes())
    }

    /// A connection of an engine begins to act for the owner of this name.
    pub fn attach(&mut self, name: &[u8], part: Part, engine: usize) -> OwnerId {
        let id = self.intern(name);
        self.changes += 1;
        let owner = &mut self.known[id];
        owner.change = self.changes;
        owner.attach(part, engine);
        id
    }

    /// A connection stops acting for an owner; true if it was the last one of that part.
    pub fn detach(&mut self, id: OwnerId, part: Part, engine: usize) -> bool {
        self.changes += 1;
        let owner = &mut self.known[id];
        owner.change = self.changes;
        owner.detach(part, engine);
        !owner.has_connections(part)
    }

    /// All connections of an engine are lost. Returns the parts for which no connection acts now.
    pub fn abandon(&mut self, engine: usize) -> Vec<(OwnerId, Part)> {
        let mut silent = Vec::new();
        self.changes += 1;
        for (id, owner) in self.known.iter_mut() {
            for part in [Part::Dialog, Part::Update] {
                if owner.abandon(part, engine) {
                    owner.change = self.changes;
                    if !owner.has_connections(part) {
                        silent.push((id, part));
                    }
                }
            }
        }
        silent
    }

    /// The version of an owner for [`Owners::forget`]: it changes when a connection begins or stops
    /// acting for the owner.
    pub fn change(&self, id: OwnerId) -> u64 {
        self.known.get(id).map_or(0, |it| it.change)
    }

    /// Frees the number of an owner without locks, if no connection acts for it and `change` is
    /// still its version. The caller must read `change` before it checks that the owner has no
    /// locks.
    pub fn forget(&mut self, id: OwnerId, change: u64) {
        let idle = |it: &Owner| it.connections.is_empty() && it.change == change;
        if self.known.get(id).is_some_and(idle)
            && let Some(owner) = self.known.remove(id)
        {
            self.by_name.remove(owner.name.as_bytes());
        }
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// High-water mark.
    pub fn peak(&self) -> usize {
        self.peak
    }
}

impl Owner {
    fn attach(&mut self, part: Part, engine: usize) {
        match self.position(part, engine) {
            Some(at) => self.connections[at].count += 1,
            None => self.connections.push(OwnerConnections {
                engine,
                part,
                count: 1,
            }),
        }
    }

    fn detach(&mut self, part: Part, engine: usize) {
        if let Some(at) = self.position(part, engine) {
            self.connections[at].count -= 1;
            if self.connections[at].count == 0 {
                self.connections.swap_remove(at);
            }
        }
    }

    /// True if there were any.
    fn abandon(&mut self, part: Part, engine: usize) -> bool {
        let found = self.position(part, engine);
        found.map(|at| self.connections.swap_remove(at)).is_some()
    }

    fn has_connections(&self, part: Part) -> bool {
        self.connections.iter().any(|it| it.part == part)
    }

    fn position(&self, part: Part, engine: usize) -> Option<usize> {
        self.connections.iter().position(|it| it.are(part, engine))
    }
}

impl OwnerConnections {
    fn are(&self, part: Part, engine: usize) -> bool {
        self.part == part && self.engine == engine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_that_dies_takes_its_own_connections_with_it() {
        let mut owners = Owners::default();
        let shared = owners.attach(b"shared", Part::Dialog, 0);
        owners.attach(b"shared", Part::Dialog, 1);
        let own = owners.attach(b"own", Part::Dialog, 1);
        owners.attach(b"own", Part::Dialog, 1);
        owners.attach(b"own", Part::Update, 1);
        assert!(!owners.detach(own, Part::Dialog, 1), "it has another one");
        let silent = owners.abandon(1);
        assert_eq!(silent, [(own, Part::Dialog), (own, Part::Update)]);
        assert_eq!(owners.abandon(1), []);
        assert!(owners.detach(shared, Part::Dialog, 0), "the last one");
        for id in [own, shared] {
            owners.forget(id, owners.change(id));
        }
        assert!(owners.is_empty());
    }
}
