//! The I/Os that are under way, by numbers that are used again.

use crate::time::Time;
use crate::workload::Io;

/// An I/O of a process until all its pieces are done.
#[derive(Debug, Clone, Copy)]
pub struct Pending {
    pub process: usize,
    pub io: Io,
    pub begun: Time,
    pieces: u32,
}

impl Pending {
    /// One that begins; it has no pieces yet.
    pub fn new(process: usize, io: Io, begun: Time) -> Self {
        Self {
            process,
            io,
            begun,
            pieces: 0,
        }
    }
}

/// All that are under way.
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
