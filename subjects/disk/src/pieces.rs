//! Which I/Os a request serves: one, or several that were merged into it.

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

    /// What `gone` serves, `into` serves as well.
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
