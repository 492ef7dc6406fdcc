//! The reference server: one small server whose concurrency architecture is a set of dials.
//!
//! `docs/programs/server.md` is the user's page. [`net`] moves bytes, [`resp`] understands them,
//! [`commands`] say what is asked, [`locks`], [`leases`] and [`backup`] do it; [`hall`] is what the
//! threads share. The protocol, the locks and the leases know of no thread, clock or file.

pub mod backup;
pub mod commands;
pub mod error;
pub mod hall;
pub mod leases;
pub mod locks;
pub mod monitor;
pub mod net;
mod report;
pub mod resp;
pub mod server;
mod service;
pub mod settings;
pub mod statements;

use std::process::ExitCode;

use clap::Parser;

/// Entry point of the binary: 0 stopped, 1 failed, 2 wrong usage.
pub fn main() -> ExitCode {
    let served = settings::Options::parse().settings();
    match served.and_then(server::serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("concurve-server: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
