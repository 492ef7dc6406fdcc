//! The reference server: a small server whose concurrency architecture is set by options.
//!
//! `docs/programs/server.md` is the user's page. [`net`] moves bytes, [`resp`] parses them, and
//! [`commands`] execute requests on the [`services`]. All threads share the [`state`], and [`server`]
//! starts the threads. The protocol, the lock table and the leases use no threads, clocks or files.

pub mod backup;
pub mod commands;
pub mod error;
pub mod leases;
pub mod locks;
pub mod monitor;
pub mod net;
pub mod options;
pub mod records;
mod report;
pub mod request;
pub mod resp;
pub mod scripts;
pub mod server;
pub mod services;
pub mod session;
pub mod slab;
pub mod state;
pub mod statements;

use std::process::ExitCode;

use clap::Parser;

/// Entry point of the binary. The exit code is 0 if it was stopped, 1 if it failed, 2 if it was
/// used wrongly.
pub fn main() -> ExitCode {
    let served = options::ServerArgs::parse().options();
    match served.and_then(server::serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("concurve-server: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
