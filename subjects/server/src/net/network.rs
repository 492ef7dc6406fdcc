//! The state that the threads of [`net`](super) share.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use crate::error::Error;
use crate::net::clients::{Clients, ThreadCounters};
use crate::net::handover::ConnectionHandover;
use crate::net::inbox::{IoInbox, Message};
use crate::net::run_queue::RunQueue;
use crate::options::{DISPLACED_MAX, Replies, ServerOptions, ThreadModel};

/// Clients, I/O threads, and the path of a request from them to the engines.
#[derive(Debug)]
pub struct Network {
    pub clients: Clients,
    /// Clients must log in.
    needs_password: bool,
    /// When it was opened.
    since: Instant,
    /// The counters of each I/O thread, or of each engine if engines own the sockets.
    pub counters: Box<[ThreadCounters]>,
    /// Messages for each I/O thread, in the same order.
    pub inboxes: Box<[Arc<IoInbox>]>,
    pub path: RequestPath,
}

/// The path of a request from its socket to an engine: the shared part of a [`ThreadModel`].
#[derive(Debug)]
pub enum RequestPath {
    /// The request goes from an I/O thread through a run queue to any engine.
    RunQueue(QueuePath),
    /// No path: the engine owns the socket. A listener assigns clients to engines.
    SocketThreads,
    /// No path: the engine owns the socket. Engines accept clients and hand them over to each
    /// other.
    SocketProcesses(ConnectionHandover),
}

/// Queues between I/O threads, engines and the disk thread.
#[derive(Debug)]
pub struct QueuePath {
    /// From I/O threads to engines.
    pub requests: RunQueue,
    /// From engines to the disk thread, if there is one.
    pub disk: Option<RunQueue>,
    pub replies: Replies,
    /// Wall time that engines spent on execution.
    pub busy_ns: AtomicU64,
    /// Number of batches that engines executed.
    pub batches: AtomicU64,
}

impl Network {
    /// Opens the descriptors through which engines communicate. To be called before they are
    /// forked.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub fn open(options: &ServerOptions) -> Result<Self, Error> {
        let io_threads = options.threads.io_threads();
        let inboxes: Result<_, Error> = (0..io_threads).map(|_| IoInbox::new()).collect();
        let path = match options.threads {
            ThreadModel::RunQueue {
                engines,
                replies,
                has_disk_thread,
                ..
            } => RequestPath::RunQueue(QueuePath {
                requests: RunQueue::new("run queue", engines),
                disk: has_disk_thread.then(|| RunQueue::new("disk queue", 1)),
                replies,
                busy_ns: AtomicU64::new(0),
                batches: AtomicU64::new(0),
            }),
            ThreadModel::SocketThreads { .. } => RequestPath::SocketThreads,
            ThreadModel::SocketProcesses { engines } => {
                let handover = ConnectionHandover::new(engines);
                RequestPath::SocketProcesses(handover.map_err(Error::io("open pairs of sockets"))?)
            }
        };
        Ok(Self {
            clients: Clients::new(options.clients_max),
            needs_password: options.password.is_some(),
            since: Instant::now(),
            counters: (0..io_threads).map(|_| ThreadCounters::default()).collect(),
            inboxes: inboxes?,
            path,
        })
    }

    /// Milliseconds since it was opened.
    pub fn ms(&self, now: Instant) -> u64 {
        now.duration_since(self.since).as_millis() as u64
    }

    /// Number of connected clients.
    pub fn connected(&self) -> u64 {
        self.counters.iter().map(|it| it.open.load(Relaxed)).sum()
    }

    /// Number of connected clients that have not logged in.
    pub fn newcomers(&self) -> u64 {
        match self.needs_password {
            true => self.counters.iter().map(ThreadCounters::newcomers).sum(),
            false => 0,
        }
    }

    /// Bytes that wait for all clients.
    pub fn buffered_bytes(&self) -> u64 {
        let threads = self.counters.iter();
        let bytes: i64 = threads.map(|it| it.buffered_bytes.load(Relaxed)).sum();
        // Below zero for a moment, while a thread counts.
        bytes.max(0) as u64
    }

    /// Admits a client, unless there are too many. Returns its number. Where newcomers are
    /// connected, one of them makes room for it: see [`Network::make_room`].
    pub fn admit(&self) -> Option<u64> {
        let connected = self.connected();
        let displaced_max = match self.newcomers() {
            0 => 0,
            _ => DISPLACED_MAX,
        };
        (connected < self.clients.max + displaced_max).then(|| self.clients.count(connected))
    }

    /// Closes the client that has been connected longest without logging in, if there are too many.
    /// To be called when a new client is counted.
    pub fn make_room(&self) {
        if self.needs_password && self.connected() > self.clients.max {
            self.inboxes[self.with_oldest_newcomer()].send(Message::MakeRoom);
        }
    }

    /// The I/O thread with the newcomer that has been connected longest. If no thread has looked at
    /// its newcomers yet, the one that was given the most.
    pub fn with_oldest_newcomer(&self) -> usize {
        let threads = self.counters.iter().enumerate();
        let order = |(_, it): &(usize, &ThreadCounters)| {
            let oldest = it.oldest_newcomer.load(Relaxed);
            (oldest == 0, oldest, Reverse(it.newcomers()))
        };
        threads.min_by_key(order).map_or(0, |(at, _)| at)
    }

    /// The I/O thread with the connection whose buffers are the largest. Of several that are equal,
    /// it is the one that asks.
    pub fn with_largest_buffers(&self, asks: usize) -> usize {
        let bytes = |at: &usize| (self.counters[*at].largest_bytes.load(Relaxed), *at == asks);
        (0..self.counters.len()).max_by_key(bytes).unwrap_or(asks)
    }

    /// Number of executed requests.
    pub fn requests(&self) -> u64 {
        self.requests_per_io_thread().iter().sum()
    }

    pub fn requests_per_io_thread(&self) -> Vec<u64> {
        let threads = self.counters.iter();
        threads.map(|it| it.requests.load(Relaxed)).collect()
    }

    /// Number of I/O threads to which a connection was assigned.
    pub fn active_io_threads(&self) -> usize {
        let threads = self.counters.iter();
        threads
            .filter(|it| it.connections.load(Relaxed) > 0)
            .count()
    }

    /// The run queue and the queue of the disk thread, as far as there are any.
    pub fn queues(&self) -> impl Iterator<Item = &RunQueue> {
        let path = match &self.path {
            RequestPath::RunQueue(path) => Some(path),
            RequestPath::SocketThreads | RequestPath::SocketProcesses(_) => None,
        };
        path.into_iter()
            .flat_map(|it| std::iter::once(&it.requests).chain(&it.disk))
    }
}
