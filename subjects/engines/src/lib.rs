//! Engines that are threads or processes, and the memory that they share.
//!
//! [`serve`] runs a [`Service`]: it is opened once, then run by several engines at the same time, and
//! closed. With [`Mode::Threads`] they are threads. With [`Mode::Processes`] they are processes over
//! one [`memory`], and the same code runs: what is shared must be latched with `concurve-latch`.
//!
//! ```text
//! keeper ─ forks ─▶ generation: opens the service in new shared memory
//!   │                  ├─ forks ─▶ engine 1
//!   │                  └─ forks ─▶ engine 2
//!   └─ forks the next generation when one has died
//! ```
//!
//! An engine that is killed while it holds no latch is replaced. If it held one, what it guards may be
//! half changed: the whole generation is ended, and the next one opens the service anew, from its
//! logs. No process outlives the one that forked it.

pub mod memory;
mod processes;
mod service;
mod signals;
mod stop;
mod threads;

use thiserror::Error;

pub use service::{Engine, Event, Mode, Plan, Service, Start};

/// Why a service ended otherwise than it was asked to.
#[derive(Debug, Error)]
pub enum EnginesError {
    /// The service's own words.
    #[error("{0}")]
    Service(String),
    #[error("engine {0} panicked; standard error says where")]
    Panicked(u32),
    #[error("the engines died {count} times in a row soon after their start; the last time: {why}")]
    KeepsDying { count: u32, why: String },
    #[error(
        "the engines died while they were stopped: {0}; the next start finds what they had committed"
    )]
    DiedStopping(String),
    #[error("the engines did not stop within {0} s and were killed")]
    Stuck(u64),
    #[error("engines cannot be processes: {0}")]
    Unfit(String),
    #[error("cannot {what}: {source}")]
    System {
        what: String,
        source: std::io::Error,
    },
}

/// Says what was being done when the system refused.
pub(crate) trait While<T> {
    fn when(self, what: &str) -> Result<T, EnginesError>;
}

impl<T, E: Into<std::io::Error>> While<T> for Result<T, E> {
    fn when(self, what: &str) -> Result<T, EnginesError> {
        self.map_err(|source| EnginesError::System {
            what: what.to_owned(),
            source: source.into(),
        })
    }
}

/// Runs a service until its engines have ended, or SIGTERM or SIGINT asks for it.
///
/// With processes, to be called while the program has one thread. It returns in the process that
/// called it, and in no other.
///
/// # Errors
/// If the service says so, its engines keep dying, or the system refuses something.
pub fn serve<S: Service>(plan: &Plan, service: &S) -> Result<(), EnginesError> {
    match plan.mode {
        Mode::Threads => threads::serve(plan, service),
        Mode::Processes => processes::serve(plan, service),
    }
}
