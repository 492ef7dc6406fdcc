//! A serving role without work.

use std::time::{Duration, Instant};

use clap::Args;
use concurve_reporter::Reporter;

use crate::error::Error;
use crate::stop::{LIMIT_S_DEFAULT, Stop};

/// Report ready after a while, then wait for SIGTERM and exit with 0
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  concurve-targets serve --ready-ms 50
  concurve-targets serve --leave-after-ms 100          a server that leaves too early")]
pub struct Serve {
    /// Time from the start until `ready` is reported
    #[arg(long, value_name = "M", default_value_t = 0)]
    ready_ms: u64,
    /// Exit with 0 this long after ready, without a request to stop
    #[arg(long, value_name = "M")]
    leave_after_ms: Option<u64>,
    /// End after this time at the latest
    #[arg(long, value_name = "S", default_value_t = LIMIT_S_DEFAULT)]
    limit_s: u64,
}

impl Serve {
    pub fn run(&self) -> Result<(), Error> {
        let begin = Instant::now();
        let reporter = Reporter::from_environment()?;
        let stop = Stop::watch()?;
        stop.wait(Duration::from_millis(self.ready_ms));
        if stop.requested() {
            return Ok(());
        }
        reporter.ready()?;
        let limit = Duration::from_secs(self.limit_s).saturating_sub(begin.elapsed());
        let leave = self.leave_after_ms.map_or(limit, Duration::from_millis);
        stop.wait(limit.min(leave));
        Ok(())
    }
}
