//! I/Os under way, and which of them each request to a device belongs to.

use crate::request::Io;
use crate::time::Time;

/// An I/O of a process until all its pieces are done.
#[derive(Debug, Clone, Copy)]
pub struct Pending {
    pub process: usize,
    pub io: Io,
    pub begun: Time,
    pieces: u32,
}

impl Pending {
    /// A new I/O; it has no pieces yet.
    pub fn new(process: usize, io: Io, begun: Time) -> Self {
        Self {
            process,
            io,
            begun,
            pieces: 0,
        }
    }
}

/// All I/Os under way.
#[derive(Debug, Default)]
pub struct PendingIos {
    places: Vec<Pending>,
    free: Vec<u32>,
}

impl PendingIos {
    /// Its number until it is done.
    pub fn add(&mut self, pending: Pending) -> u32 {
        match self.free.pop() {
            Some(id) => {
                self.places[id as usize] = pending;
                id
            }
            None => {
                self.places.push(pending);
                (self.places.len() - 1) as u32
            }
        }
    }

    pub fn add_piece(&mut self, id: u32) {
        self.places[id as usize].pieces += 1;
    }

    /// One of its pieces is done: the I/O, if that was the last.
    pub fn piece_done(&mut self, id: u32) -> Option<Pending> {
        let pending = &mut self.places[id as usize];
        pending.pieces -= 1;
        if pending.pieces > 0 {
            return None;
        }
        self.free.push(id);
        Some(*pending)
    }
}

const NONE: u32 = u32::MAX;

/// Linked lists of pieces; a request's ticket is the first of its list.
#[derive(Debug, Default)]
pub struct Pieces {
    links: Vec<Link>,
    free: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    io: u32,
    next: u32,
    /// The last of the list, kept at its first.
    last: u32,
}

impl Pieces {
    /// The ticket of a new piece of an I/O.
    pub fn add(&mut self, io: u32) -> u32 {
        let link = |ticket| Link {
            io,
            next: NONE,
            last: ticket,
        };
        match self.free.pop() {
            Some(ticket) => {
                self.links[ticket as usize] = link(ticket);
                ticket
            }
            None => {
                let ticket = self.links.len() as u32;
                self.links.push(link(ticket));
                ticket
            }
        }
    }

    /// Appends the pieces of `gone` to those of `into`.
    pub fn join(&mut self, into: u32, gone: u32) {
        let last = self.links[into as usize].last;
        self.links[last as usize].next = gone;
        self.links[into as usize].last = self.links[gone as usize].last;
    }

    /// The I/O of a piece that is done, and the next piece of its request.
    pub fn remove(&mut self, ticket: u32) -> (u32, Option<u32>) {
        let link = self.links[ticket as usize];
        self.free.push(ticket);
        (link.io, (link.next != NONE).then_some(link.next))
    }
}
