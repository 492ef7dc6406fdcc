//! I/O schedulers over disks, simulated.
//!
//! ```text
//! workload ─▶ simulation ─▶ device: queue, merging, scheduler ─▶ disk: arm, platters, caches
//! ```
//!
//! A workload's processes submit I/Os on a volume; the simulation splits them among the disks; a
//! device merges them, and its scheduler decides which goes to the disk when; the disk model gives
//! the service time. Everything follows from a seed.

pub mod account;
mod cli;
pub mod device;
pub mod disk;
pub mod error;
pub mod event_file;
pub mod machine;
pub mod page_cache;
mod report;
pub mod request;
mod run;
pub mod scheduler;
pub mod simulation;
pub mod time;
pub mod workload;

pub use machine::Machine;
pub use run::main;
pub use simulation::Simulation;
