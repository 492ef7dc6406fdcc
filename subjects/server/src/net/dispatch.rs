//! What an I/O thread has for the run queue: requests gather into batches.

use crate::net::batch::Batch;
use crate::net::run_queue::RunQueue;

/// A batch is sent off when it is this large, even if more connections have requests.
const BATCH_BYTES: usize = 256 * 1024;

/// Batches whose memory is kept for the next ones.
const SPARE_BATCHES: usize = 4;

#[derive(Debug)]
pub struct Dispatch<'a> {
    queue: &'a RunQueue,
    io_thread: usize,
    /// What gathers.
    pub batch: Batch,
    /// Batches that others have.
    away: usize,
    away_max: usize,
    spare: Vec<Batch>,
}

impl<'a> Dispatch<'a> {
    pub fn new(queue: &'a RunQueue, io_thread: usize, has_disk_thread: bool) -> Self {
        // One for each engine; with a disk's thread one that it makes durable, and one that is next.
        let at_disk = if has_disk_thread { 2 } else { 0 };
        Self {
            queue,
            io_thread,
            batch: Batch::default(),
            away: 0,
            away_max: queue.takers() + at_disk,
            spare: Vec::new(),
        }
    }

    /// How many of so many connections make a batch: enough that each engine has one.
    pub fn share(&self, connections: usize) -> usize {
        connections.div_ceil(self.queue.takers())
    }

    /// A connection's requests have been added.
    pub fn added(&mut self, share: usize) {
        if self.batch.len() > BATCH_BYTES {
            self.send();
        } else if self.batch.chunks.len() >= share {
            self.hand_over();
        }
    }

    /// Sends off what there is, unless others have enough to do. Then requests gather: the more there
    /// is to do, the fewer messages and wake-ups each needs.
    pub fn hand_over(&mut self) {
        if self.away < self.away_max && self.gathers() {
            self.send();
        }
    }

    /// Whether requests wait here until a batch comes back.
    pub fn gathers(&self) -> bool {
        !self.batch.is_empty()
    }

    fn send(&mut self) {
        self.away += 1;
        let next = self.spare.pop().unwrap_or_default();
        let batch = std::mem::replace(&mut self.batch, next);
        self.queue.send((self.io_thread, batch));
    }

    /// A batch has come back, and was answered: its memory is used again.
    pub fn take_back(&mut self, mut batch: Batch) {
        self.away -= 1;
        batch.clear();
        if self.spare.len() < SPARE_BATCHES {
            self.spare.push(batch);
        }
    }
}
