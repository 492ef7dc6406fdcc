//! What engines run.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::stop::Stop;

/// Whether engines are threads or processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Threads,
    Processes,
}

/// How a service is run.
#[derive(Debug, Clone)]
pub struct Plan {
    pub mode: Mode,
    pub engines: u32,
    /// Bytes of shared memory. Used in both modes, so that they differ in nothing else.
    pub memory_bytes: usize,
    /// The remedy in the message when it is exhausted: `raise --shared-memory`.
    pub memory_remedy: &'static str,
    /// After so many deaths in a row within a second of the start, engines are not started again.
    /// For processes only.
    pub quick_deaths_max: u32,
    /// Engines that have not stopped after this time are killed.
    pub stop_within: Duration,
}

/// Counts the openings of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// From 1; one more after each generation that died.
    pub generation: u32,
}

/// What happened, reported in the process that called [`crate::serve`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The service is open, and its engines run.
    Ready { generation: u32 },
    /// A process does not run because it was stopped (SIGSTOP); it is killed unless it continues within
    /// this time.
    Stopped { why: String, within: Duration },
    /// An engine died holding no latch, and another one replaces it.
    Replaced { engine: u32, why: String },
    /// All engines were ended, and will be started anew.
    Lost { why: String },
}

/// A service that engines run at the same time.
pub trait Service: Sync {
    /// What the engines share, guarded by `concurve-latch`.
    type Shared: Send + Sync;

    /// Opens the service before its engines start: in each generation anew, from its files. It must
    /// not start threads; an engine may.
    ///
    /// # Errors
    /// Why it cannot be opened. [`crate::serve`] returns it.
    fn open(&self, start: Start) -> Result<Self::Shared, String>;

    /// Runs one engine, until it has nothing more to do or [`Engine::is_stopping`].
    ///
    /// # Errors
    /// Why it cannot continue. [`crate::serve`] returns it.
    fn run(&self, shared: &Self::Shared, engine: &Engine) -> Result<(), String>;

    /// Closes the service, after all engines have ended.
    ///
    /// # Errors
    /// Why that failed. [`crate::serve`] returns it.
    fn close(&self, shared: Self::Shared) -> Result<(), String>;

    /// Called for each event.
    fn on_event(&self, event: &Event);
}

/// What an engine knows about itself.
#[derive(Debug)]
pub struct Engine {
    /// From 1.
    pub number: u32,
    /// How many engines of this number died before it in its generation. This one must end what
    /// they left unfinished, such as the sessions of their clients.
    pub predecessors: u32,
    pub(crate) stop: Stop,
}

impl Engine {
    /// Whether the engine is to return.
    pub fn is_stopping(&self) -> bool {
        self.stop.is_requested()
    }

    /// Requests that all engines return, because this one cannot continue.
    pub fn stop_all(&self) {
        self.stop.request();
    }

    /// A function that does what [`Engine::stop_all`] does: for threads that have no engine.
    pub fn stopper(&self) -> impl Fn() + Send + Sync + use<> {
        let stop = self.stop.clone();
        move || stop.request()
    }

    /// Becomes readable when the engine is to return, and stays so. Not to be read from.
    pub fn stop_descriptor(&self) -> BorrowedFd<'_> {
        self.stop.descriptor()
    }
}
