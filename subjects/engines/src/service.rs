//! What engines run.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::stop::Stop;

/// What engines are.
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
    /// Bytes of shared memory. Opened in both modes, so that they differ by nothing else.
    pub memory_bytes: usize,
    /// What to tell the user when it is exhausted: `raise --shared-memory`.
    pub memory_remedy: &'static str,
    /// How often in a row they may die within a second of their start, before they are not started
    /// again. Only processes are.
    pub quick_deaths_max: u32,
    /// How long engines have to stop before they are killed.
    pub stop_within: Duration,
}

/// Which opening of a service this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// From 1; each further one follows a death.
    pub generation: u32,
}

/// What happened, told in the process that called [`crate::serve`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The service is open, and its engines run.
    Ready { generation: u32 },
    /// An engine died without a latch, and another one takes its place.
    Replaced { engine: u32, why: String },
    /// All engines are ended, and will be started anew.
    Lost { why: String },
}

/// A service that engines run at the same time.
pub trait Service: Sync {
    /// What the engines share: latched with `concurve-latch`.
    type Shared: Send + Sync;

    /// Opens it, before its engines start: in each generation anew, from what it has on disk. It must
    /// not start threads; an engine may.
    ///
    /// # Errors
    /// Why it cannot be opened. The server ends with it.
    fn open(&self, start: Start) -> Result<Self::Shared, String>;

    /// Is one engine, until it has nothing more to do or [`Engine::is_stopping`].
    ///
    /// # Errors
    /// Why it cannot go on. The server ends with it.
    fn run(&self, shared: &Self::Shared, engine: &Engine) -> Result<(), String>;

    /// Closes it in order, after all engines have ended.
    ///
    /// # Errors
    /// Why that failed. The server ends with it.
    fn close(&self, shared: Self::Shared) -> Result<(), String>;

    /// Hears what happens.
    fn tell(&self, event: &Event);
}

/// One of the engines, as it sees itself.
#[derive(Debug)]
pub struct Engine {
    /// From 1.
    pub number: u32,
    /// Those before it in its generation that died. What they left unfinished, such as the sessions
    /// of their clients, is this one's to end.
    pub predecessors: u32,
    pub(crate) stop: Stop,
}

impl Engine {
    /// It is time to return.
    pub fn is_stopping(&self) -> bool {
        self.stop.is_asked()
    }

    /// Becomes readable when it is time to return, and stays so. Not to be read from.
    pub fn stop_descriptor(&self) -> BorrowedFd<'_> {
        self.stop.descriptor()
    }
}
