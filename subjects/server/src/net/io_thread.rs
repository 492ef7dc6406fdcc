//! An I/O thread beside engines: it owns the sockets, puts requests into the run queue, and writes
//! replies.

use std::ops::ControlFlow;
use std::time::Instant;

use concurve_clock::CpuClock;

use crate::error::Error;
use crate::net::batch::Batch;
use crate::net::network::QueuePath;
use crate::net::run_queue::RunQueue;
use crate::net::sockets::{ClientSockets, NumberList, Sleep, SocketContext};
use crate::net::threads::StopSignal;

/// A batch of this size is sent, even if more connections have requests.
const BATCH_BYTES: usize = 256 * 1024;

/// Number of empty batches that are kept, to use their memory again.
const SPARE_BATCHES: usize = 4;

/// Serves the sockets of an I/O thread until the engine ends.
///
/// # Errors
/// If the system refuses to wait for sockets.
pub fn run(server: SocketContext, path: &QueuePath, stop: &StopSignal) -> Result<(), Error> {
    let mut sockets = ClientSockets::open(server, stop)?;
    let mut dispatch = Dispatch::new(path, server.number);
    let (mut batch, mut returned) = (Batch::of(server.number), Vec::new());
    server.meter.begin(CpuClock::of_this_thread());
    while !stop.is_set() {
        sockets.wait(match batch.is_empty() {
            true => Sleep::UntilUrgentMessage,
            false => Sleep::UntilAnyMessage,
        })?;
        let now = Instant::now();
        sockets.take_events(now, &mut returned);
        for mut batch in returned.drain(..) {
            sockets.take_back(&mut batch, now, NumberList::insert);
            dispatch.take_back(batch);
        }
        let share = dispatch.share(sockets.turns());
        sockets.read_requests(now, &mut batch, |batch| {
            dispatch.added(batch, share);
            ControlFlow::Continue(())
        });
        dispatch.send_if_due(&mut batch);
        sockets.write_replies(now, &mut batch);
        dispatch.send_if_due(&mut batch);
    }
    Ok(())
}

/// Decides when a batch goes to the run queue.
struct Dispatch<'a> {
    queue: &'a RunQueue,
    io_thread: usize,
    /// Number of batches that are with engines or with the disk thread.
    away: usize,
    away_max: usize,
    spare: Vec<Batch>,
}

impl<'a> Dispatch<'a> {
    fn new(path: &'a QueuePath, io_thread: usize) -> Self {
        // One for each engine; for the disk thread the batch that it makes durable, and the next
        // one.
        let at_disk = if path.disk.is_some() { 2 } else { 0 };
        Self {
            queue: &path.requests,
            io_thread,
            away: 0,
            away_max: path.requests.takers() + at_disk,
            spare: Vec::new(),
        }
    }

    /// How many of these connections make a batch, so that each engine gets one.
    fn share(&self, connections: usize) -> usize {
        connections.div_ceil(self.queue.takers())
    }

    /// A connection had its turn.
    fn added(&mut self, batch: &mut Batch, share: usize) {
        if batch.len() > BATCH_BYTES {
            self.send(batch);
        } else if batch.connections() >= share {
            self.send_if_due(batch);
        }
    }

    /// Sends a batch, unless enough batches are away to keep the engines busy. Then the batch
    /// collects further requests: under load, a request costs fewer messages and wake-ups.
    fn send_if_due(&mut self, batch: &mut Batch) {
        if self.away < self.away_max && !batch.is_empty() {
            self.send(batch);
        }
    }

    fn send(&mut self, batch: &mut Batch) {
        self.away += 1;
        let next = self.spare.pop();
        let next = next.unwrap_or_else(|| Batch::of(self.io_thread));
        self.queue.send(std::mem::replace(batch, next));
    }

    /// A batch is back and empty: keeps it, to use its memory again.
    fn take_back(&mut self, batch: Batch) {
        self.away -= 1;
        if self.spare.len() < SPARE_BATCHES {
            self.spare.push(batch);
        }
    }
}
