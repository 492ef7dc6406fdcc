//! Counts and limits of the server's clients.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use crate::net::incidents::Incidents;

/// Clients of the whole server since its start.
#[derive(Debug)]
pub struct Clients {
    /// Maximum number of connected clients.
    pub max: u64,
    /// Highest number of clients that were connected at the same time.
    pub peak: AtomicU64,
    pub accepted: AtomicU64,
    /// Clients that met a limit.
    pub incidents: Incidents,
}

/// The counters of one I/O thread, on cache lines of their own: it writes them all the time.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct ThreadCounters {
    /// Connections that were assigned to it.
    pub connections: AtomicU64,
    /// Those of them that are open.
    pub open: AtomicU64,
    /// Open connections that have logged in, or need not.
    pub logged_in: AtomicU64,
    /// The number of the client that has been connected longest without logging in; 0: there is none.
    pub oldest_newcomer: AtomicU64,
    /// Bytes of its connections that wait: for their execution, or to be read by clients.
    pub buffered_bytes: AtomicI64,
    /// The most of them that belong to one connection. May be out of date by half a second, and too
    /// large then.
    pub largest_bytes: AtomicU64,
    pub requests: AtomicU64,
    /// When it last looked for work, in ms since the network was opened; 0: not yet.
    pub awake_ms: AtomicU64,
}

impl Clients {
    pub fn new(max: u64) -> Self {
        Self {
            max,
            peak: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            incidents: Incidents::default(),
        }
    }

    /// Counts a client that is admitted while `connected` clients are connected. Returns its number,
    /// from 1.
    pub fn count(&self, connected: u64) -> u64 {
        self.peak.fetch_max(connected + 1, Relaxed);
        self.accepted.fetch_add(1, Relaxed) + 1
    }
}

impl ThreadCounters {
    /// Open connections that have not logged in.
    pub fn newcomers(&self) -> u64 {
        let logged_in = self.logged_in.load(Relaxed);
        self.open.load(Relaxed).saturating_sub(logged_in)
    }

    /// An I/O thread begins, perhaps in the place of one that died with its connections.
    pub fn begin(&self) {
        for counter in [&self.logged_in, &self.oldest_newcomer, &self.largest_bytes] {
            counter.store(0, Relaxed);
        }
        self.buffered_bytes.store(0, Relaxed);
    }
}
