//! Counts and limits of the server's clients.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Clients of the whole server since its start.
#[derive(Debug)]
pub struct Clients {
    /// Maximum number of connected clients.
    pub max: u64,
    /// Highest number of clients that were connected at the same time.
    pub peak: AtomicU64,
    pub accepted: AtomicU64,
    /// Clients that were refused because there were too many.
    pub refused: AtomicU64,
    /// Connections that were closed because their clients stalled.
    pub closed_by_limits: AtomicU64,
}

/// The counters of one I/O thread.
#[derive(Debug, Default)]
pub struct ThreadCounters {
    /// Connections that were assigned to it.
    pub connections: AtomicU64,
    /// Those of them that are open.
    pub open: AtomicU64,
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
            refused: AtomicU64::new(0),
            closed_by_limits: AtomicU64::new(0),
        }
    }

    /// Admits a client while `connected` clients are connected. Returns its number; `None` if there
    /// are too many.
    pub fn admit(&self, connected: u64) -> Option<u64> {
        if connected >= self.max {
            self.refused.fetch_add(1, Relaxed);
            return None;
        }
        self.peak.fetch_max(connected + 1, Relaxed);
        Some(self.accepted.fetch_add(1, Relaxed) + 1)
    }
}
