//! The state that all threads and engines of the server share.
//!
//! It is created before engines are forked, in the memory that they share. So every part that
//! changes is atomic or behind a latch of `concurve-latch`, and descriptors are opened here.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use concurve_engines::Start;
use concurve_latch::{Class, Mutex};

use crate::error::Error;
use crate::keeping::AtStart;
use crate::monitor::meter::{Meter, Meters};
use crate::monitor::phase::Phase;
use crate::net::network::Network;
use crate::net::sockets::SocketContext;
use crate::options::{ServerOptions, ThreadModel};
use crate::services::Services;

/// The shared state: the services, the network and the counters.
#[derive(Debug)]
pub struct SharedState {
    pub options: ServerOptions,
    pub services: Services,
    pub network: Network,
    pub monitoring: Monitoring,
    /// How often the services were opened: 1 at the start, more after crashes.
    pub generation: u32,
    /// Engines that died in this generation, and were replaced.
    pub engine_deaths: AtomicU64,
    pub port: u16,
    /// What the memory had in use then.
    pub memory_at_start: AtStart,
}

/// The meters of all threads, and the measured phase.
#[derive(Debug)]
pub struct Monitoring {
    pub meters: Meters,
    pub phase: Mutex<Phase>,
}

impl SharedState {
    /// Opens the services for a server that listens on a port.
    ///
    /// # Errors
    /// If a file cannot be used, or the system has no descriptors left.
    pub fn open(options: ServerOptions, port: u16, start: Start) -> Result<Self, Error> {
        let services = Services::open(&options)?;
        let network = Network::open(&options)?;
        Ok(Self {
            services,
            network,
            memory_at_start: AtStart::now(),
            monitoring: Monitoring::new(options.threads),
            generation: start.generation,
            engine_deaths: AtomicU64::new(0),
            port,
            options,
        })
    }

    /// For the connections of the I/O thread of this number, from 0.
    pub fn socket_context<'a>(&'a self, number: usize, meter: &'a Meter) -> SocketContext<'a> {
        SocketContext {
            number,
            meter,
            options: &self.options,
            network: &self.network,
            services: &self.services,
        }
    }

    /// Ends the sessions of an engine, from 0, that died.
    pub fn end_sessions_of(&self, engine: usize) {
        self.engine_deaths.fetch_add(1, Relaxed);
        self.services.end_sessions_of(engine);
    }
}

impl Monitoring {
    fn new(threads: ThreadModel) -> Self {
        let meters = match threads {
            ThreadModel::RunQueue {
                engines,
                io_threads,
                has_disk_thread,
                ..
            } => Meters::new(engines, io_threads, has_disk_thread.into()),
            ThreadModel::SocketThreads { engines } | ThreadModel::SocketProcesses { engines } => {
                Meters::new(engines, 0, 0)
            }
        };
        Self {
            meters,
            phase: Class::named("phase").mutex(Phase::default()),
        }
    }
}
