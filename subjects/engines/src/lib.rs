//! Engines that are threads or processes, and the memory that they share.
//!
//! [`serve`] runs a [`Service`]: opens it once, runs it in several engines at the same time, and closes
//! it. With [`Mode::Threads`] the engines are threads. With [`Mode::Processes`] they are processes
//! with one shared [`memory`], and run the same code: `concurve-latch` must guard shared data.
//!
//! ```text
//! supervisor ─ forks ─▶ generation: opens the service in new shared memory
//!   │                      ├─ forks ─▶ engine 1
//!   │                      └─ forks ─▶ engine 2
//!   └─ forks the next generation when one has died
//! ```
//!
//! An engine that is killed while it holds no latch is replaced. If it held one, the data that the
//! latch guards may be half changed: the supervisor ends the whole generation, and the next one
//! opens the service anew, from its logs. No process outlives the one that forked it.

mod error;
pub mod memory;
mod panics;
mod processes;
mod service;
mod signals;
mod stop;
mod threads;

pub use error::EnginesError;
pub use panics::end_at_panics;
pub use service::{Engine, Event, Mode, Plan, Service, Start};

/// Runs a service until its engines have ended, or SIGTERM or SIGINT arrives.
///
/// With processes, to be called while the program has one thread. It returns only in the process
/// that called it.
///
/// # Errors
/// If the service fails, its engines keep dying, or the system refuses something.
pub fn serve<S: Service>(plan: &Plan, service: &S) -> Result<(), EnginesError> {
    match plan.mode {
        Mode::Threads => threads::serve(plan, service),
        Mode::Processes => processes::serve(plan, service),
    }
}
