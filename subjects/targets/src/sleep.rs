//! Threads that sleep.

use std::thread;
use std::time::Duration;

use clap::Args;
use concurve_reporter::Reporter;

use crate::error::Error;
use crate::workers::{measure, threads};

/// Sleep in N threads at once
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  concurve-targets sleep --threads 8 --ms 100")]
pub struct Sleep {
    /// Threads that sleep
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = threads())]
    threads: u32,
    /// How long each thread sleeps
    #[arg(long, value_name = "M")]
    ms: u64,
}

impl Sleep {
    pub fn run(&self) -> Result<(), Error> {
        measure(&Reporter::from_environment()?, self.threads, |_| {
            thread::sleep(Duration::from_millis(self.ms));
            Ok(1)
        })?;
        Ok(())
    }
}
