//! Owners by name, and how many connections speak for each.

use hashbrown::HashMap;

use crate::locks::argument::Text;
use crate::locks::entry::OwnerId;
use crate::locks::slab::Slab;

/// Names of owners, each with a number for as long as it is connected or holds a lock.
#[derive(Debug, Default)]
pub struct Owners {
    known: Slab<Owner>,
    by_name: HashMap<Box<[u8]>, OwnerId>,
    peak: usize,
    attached: u64,
}

#[derive(Debug)]
struct Owner {
    name: Text,
    /// Connections that speak for its dialog part.
    dialogs: u32,
    /// Connections that speak for its update part.
    updates: u32,
    /// Which of all attachments its last one was.
    attachment: u64,
}

/// Which part of an owner a connection speaks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Dialog,
    Update,
}

impl Owners {
    /// The number of a name; a new one if nobody has it yet.
    pub fn intern(&mut self, name: &[u8]) -> OwnerId {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let id = self.known.insert(Owner {
            name: Text::new(name),
            dialogs: 0,
            updates: 0,
            attachment: 0,
        });
        self.by_name.insert(name.into(), id);
        self.peak = self.peak.max(self.known.len());
        id
    }

    pub fn find(&self, name: &[u8]) -> Option<OwnerId> {
        self.by_name.get(name).copied()
    }

    /// The name, or `?` if the owner has gone meanwhile.
    pub fn name(&self, id: OwnerId) -> &[u8] {
        self.known.get(id).map_or(b"?", |it| it.name.as_bytes())
    }

    /// A connection begins to speak for the owner of this name.
    pub fn attach(&mut self, name: &[u8], part: Part) -> OwnerId {
        let id = self.intern(name);
        self.attached += 1;
        self.known[id].attachment = self.attached;
        *self.known[id].connections(part) += 1;
        id
    }

    /// A connection ends to; whether it was the last one of that part.
    pub fn detach(&mut self, id: OwnerId, part: Part) -> bool {
        let connections = self.known[id].connections(part);
        *connections -= 1;
        *connections == 0
    }

    /// Something to hand to [`Owners::forget`]: it changes when somebody attaches.
    pub fn attachment(&self, id: OwnerId) -> u64 {
        self.known.get(id).map_or(0, |it| it.attachment)
    }

    /// Gives the number of an owner that holds nothing back, if nobody speaks for it and nobody
    /// has begun to since `attachment` was read, which must be before it was found to hold nothing.
    pub fn forget(&mut self, id: OwnerId, attachment: u64) {
        let idle = |it: &Owner| it.dialogs + it.updates == 0 && it.attachment == attachment;
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
    fn connections(&mut self, part: Part) -> &mut u32 {
        match part {
            Part::Dialog => &mut self.dialogs,
            Part::Update => &mut self.updates,
        }
    }
}
