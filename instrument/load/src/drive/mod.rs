//! Drives the sessions: the main thread gives workers (threads or processes) one task after the
//! other, and each counts what its sessions do.

mod alarm;
mod engine_client;
mod event_loop;
mod greatest;
mod open_loop;
mod prefill;
mod recorder;
mod run;
mod session;
#[cfg(test)]
mod simulated;
mod worker;
mod workers;

pub use prefill::fill;
pub use run::{HEAD_START_NS, report_edge, run};
pub use worker::run_child;
pub use workers::{Workers, raise_open_file_limit};
