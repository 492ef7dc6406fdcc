//! Engines, and the one loop in which they execute requests.
//!
//! An engine gets batches of requests from a `BatchPort`: from the sockets of its clients, or from
//! the run queue. It makes commits durable itself, or leaves that to the disk thread, which runs
//! the same loop.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use concurve_clock::CpuClock;

use crate::commands;
use crate::error::Error;
use crate::monitor::meter::{Meter, State};
use crate::net::batch::{Batch, Executor};
use crate::net::inbox::Message;
use crate::net::network::{Network, QueuePath};
use crate::net::run_queue::RunQueue;
use crate::net::sockets::{ClientSockets, Entrance, Sleep};
use crate::net::threads::{StopSignal, wait_for_work};
use crate::options::Idle;
use crate::request::{Arguments, Flow};
use crate::session::Session;
use crate::state::SharedState;

/// Maximum sleep of a thread that takes from a queue; then it checks whether the server is
/// stopping.
const SLEEP_MAX: Duration = Duration::from_millis(500);

/// After reading this many bytes of requests, an engine executes them before it reads more.
const BATCH_BYTES: usize = 256 * 1024;

/// Serves the run queue as the engine of this number, from 0, until it ends.
///
/// # Errors
/// If the backup file cannot be written.
pub fn serve_queue(
    state: &SharedState,
    path: &QueuePath,
    number: usize,
    stop: &StopSignal,
) -> Result<(), Error> {
    let engine = BatchProcessor {
        state,
        number,
        meter: &state.monitoring.meters.engines[number],
    };
    let mut port = QueuePort {
        queue: &path.requests,
        idle: state.options.idle,
        meter: engine.meter,
        stop,
        network: &state.network,
    };
    engine.meter.begin(CpuClock::of_this_thread());
    serve(&mut port, stop, |batches| {
        let begin = Instant::now();
        engine.execute(batches);
        let busy_ns = begin.elapsed().as_nanos() as u64;
        path.busy_ns.fetch_add(busy_ns, Relaxed);
        path.batches.fetch_add(batches.len() as u64, Relaxed);
        match &path.disk {
            Some(disk) => engine.leave_to(disk, batches),
            None => engine.make_durable(batches)?,
        }
        Ok(())
    })
}

/// Makes commits of the engines durable, until the engine ends. Batches that arrive while it waits
/// for the disk share the next write.
///
/// # Errors
/// If the backup file cannot be written.
pub fn serve_disk_queue(
    state: &SharedState,
    disk: &RunQueue,
    stop: &StopSignal,
) -> Result<(), Error> {
    let thread = BatchProcessor {
        state,
        number: 0,
        meter: &state.monitoring.meters.disks[0],
    };
    let mut port = QueuePort {
        queue: disk,
        idle: Idle::Block, // it mostly waits for the disk
        meter: thread.meter,
        stop,
        network: &state.network,
    };
    thread.meter.begin(CpuClock::of_this_thread());
    serve(&mut port, stop, |batches| thread.make_durable(batches))
}

/// Serves the sockets of its clients as the engine of this number, from 0, until it ends. With an
/// `entrance`, the engine is a process, and accepts clients.
///
/// # Errors
/// If the system refuses to wait for sockets, or the backup file cannot be written.
pub fn serve_sockets(
    state: &SharedState,
    entrance: Option<Entrance>,
    number: usize,
    stop: &StopSignal,
) -> Result<(), Error> {
    let engine = BatchProcessor {
        state,
        number,
        meter: &state.monitoring.meters.engines[number],
    };
    let mut sockets = ClientSockets::open(state.socket_context(number, engine.meter), stop)?;
    engine.meter.begin(match entrance {
        None => CpuClock::of_this_thread(),
        Some(_) => CpuClock::of_this_process(),
    });
    if let Some(entrance) = entrance {
        sockets.accept_from(entrance)?;
    }
    let mut port = SocketPort {
        sockets,
        next: Batch::of(number),
        now: Instant::now(),
    };
    serve(&mut port, stop, |batches| {
        engine.execute(batches);
        engine.make_durable(batches)
    })
}

/// The source of an engine's batches, to which they return after their execution.
trait BatchPort {
    /// Waits for requests, and appends batches of them; may append none.
    fn receive(&mut self, batches: &mut Vec<Batch>) -> Result<(), Error>;

    /// Counts batches that were executed and are durable, and sends their replies. Leaves `batches`
    /// empty.
    fn reply(&mut self, batches: &mut Vec<Batch>);
}

/// The loop of all engines, and of the disk thread.
fn serve(
    port: &mut impl BatchPort,
    stop: &StopSignal,
    mut work: impl FnMut(&mut Vec<Batch>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut batches = Vec::new();
    while !stop.is_set() {
        port.receive(&mut batches)?;
        work(&mut batches)?;
        port.reply(&mut batches);
    }
    Ok(())
}

/// Executes batches, or makes them durable: for an engine or the disk thread.
struct BatchProcessor<'a> {
    state: &'a SharedState,
    /// Of the engine, from 0.
    number: usize,
    meter: &'a Meter,
}

impl BatchProcessor<'_> {
    fn execute(&self, batches: &mut [Batch]) {
        for batch in batches {
            batch.execute(self);
        }
    }

    /// Makes all commits and locks durable on which the replies depend. All commits share one
    /// write.
    fn make_durable(&self, batches: &mut [Batch]) -> Result<(), Error> {
        self.state.services.commit(self.meter)?;
        for batch in batches {
            batch.confirm(|session, replies| {
                let confirm = || commands::confirm(session, replies);
                self.meter.during(State::Disk, confirm);
            });
        }
        Ok(())
    }

    /// Passes batches to the disk thread, except those whose replies depend on nothing that is not
    /// durable yet: neither on a commit nor on a recorded lock.
    fn leave_to(&self, disk: &RunQueue, batches: &mut Vec<Batch>) {
        let services = &self.state.services;
        let waits = |batch: &mut Batch| batch.is_unconfirmed() || services.has_pending_notes();
        batches.extract_if(.., waits).for_each(|it| disk.send(it));
    }
}

impl Executor for BatchProcessor<'_> {
    fn execute(&self, session: &mut Session, arguments: Arguments, replies: &mut Vec<u8>) -> Flow {
        commands::execute(self.state, self.number, session, arguments, replies)
    }

    fn close(&self, session: &mut Session) {
        session.close(&self.state.services);
    }
}

/// Batches from a queue, which return to their I/O threads.
struct QueuePort<'a> {
    queue: &'a RunQueue,
    idle: Idle,
    meter: &'a Meter,
    stop: &'a StopSignal<'a>,
    network: &'a Network,
}

impl BatchPort for QueuePort<'_> {
    fn receive(&mut self, batches: &mut Vec<Batch>) -> Result<(), Error> {
        self.queue.take(batches);
        if batches.is_empty() {
            wait_for_work(self.idle, self.meter, |sleep| {
                if sleep {
                    self.queue.sleep(|| self.stop.is_set(), SLEEP_MAX);
                }
                !self.queue.is_empty()
            });
            self.queue.take(batches);
        }
        Ok(())
    }

    /// Writes the replies itself if the I/O thread would have to be woken for a single client, and
    /// lets that thread sleep if nothing is left to do. Otherwise the I/O thread writes them: it
    /// needs no wake-up if it is awake, and it writes replies to many clients while the engine
    /// continues.
    fn reply(&mut self, batches: &mut Vec<Batch>) {
        for mut batch in batches.drain(..) {
            let requests = &self.network.counters[batch.io_thread].requests;
            requests.fetch_add(batch.executed(), Relaxed);
            let inbox = &self.network.inboxes[batch.io_thread];
            let is_done = batch.connections() == 1 && inbox.sleeps() && batch.write();
            let message = Message::Executed(batch);
            if is_done {
                inbox.send_deferred(message);
            } else {
                inbox.send(message);
            }
        }
    }
}

/// Batches from sockets, whose replies are written to them.
struct SocketPort<'a> {
    sockets: ClientSockets<'a>,
    /// The next batch; contains only sessions to be closed.
    next: Batch,
    /// When the requests were read.
    now: Instant,
}

impl BatchPort for SocketPort<'_> {
    fn receive(&mut self, batches: &mut Vec<Batch>) -> Result<(), Error> {
        self.sockets.wait(match self.next.is_empty() {
            true => Sleep::UntilUrgentMessage,
            false => Sleep::No,
        })?;
        self.now = Instant::now();
        self.sockets.take_events(self.now, &mut Vec::new());
        self.sockets
            .read_requests(self.now, &mut self.next, |batch| {
                match batch.len() > BATCH_BYTES {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            });
        batches.push(std::mem::take(&mut self.next));
        Ok(())
    }

    fn reply(&mut self, batches: &mut Vec<Batch>) {
        for mut batch in batches.drain(..) {
            self.sockets.count_requests(batch.executed());
            self.sockets.take_back(&mut batch, self.now, |_, _| ());
            self.next = batch; // uses its memory again
        }
        self.sockets.write_replies(self.now, &mut self.next);
    }
}
