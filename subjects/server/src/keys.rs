//! The state of the keys that Redlock clients use, which all engines share.

use std::time::Instant;

use concurve_latch::{Class, Mutex};

use crate::leases::Leases;
use crate::scripts::ScriptRegistry;

/// What Redlock clients use: keys, and scripts over them.
#[derive(Debug)]
pub struct KeyService {
    pub leases: LeaseService,
    pub scripts: ScriptRegistry,
}

impl KeyService {
    /// For at most so many keys.
    pub fn new(capacity: usize) -> Self {
        Self {
            leases: LeaseService::new(capacity),
            scripts: ScriptRegistry::default(),
        }
    }
}

/// The keys behind a latch, and their clock.
#[derive(Debug)]
pub struct LeaseService {
    leases: Mutex<Leases>,
    begin: Instant,
}

impl LeaseService {
    fn new(capacity: usize) -> Self {
        Self {
            leases: Class::named("keys").mutex(Leases::new(capacity)),
            begin: Instant::now(),
        }
    }

    /// Runs with the keys latched, and the time in milliseconds.
    pub fn with<T>(&self, run: impl FnOnce(&mut Leases, u64) -> T) -> T {
        let now_ms = self.begin.elapsed().as_millis() as u64;
        run(&mut self.leases.lock(), now_ms)
    }

    /// Keys held, those included that have ended and are not removed yet.
    pub fn keys(&self) -> usize {
        self.leases.lock().len()
    }
}
