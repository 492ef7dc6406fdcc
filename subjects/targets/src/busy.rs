//! Threads that only compute.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use concurve_reporter::Reporter;

use crate::error::Error;
use crate::stop::{LIMIT_S_DEFAULT, Stop};
use crate::work::{CHUNK, spin, spin_until_cpu};
use crate::workers::{measure, measure_beside, share, threads};

/// Compute in N threads that share no data
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  concurve-targets busy --threads 4 --total-iterations 400000000   the same work at any N
  concurve-targets busy --threads 4 --until-stopped                a background competitor")]
pub struct Busy {
    /// Threads that compute
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = threads())]
    threads: u32,
    #[command(flatten)]
    amount: Amount,
    /// With --until-stopped: end after this time at the latest
    #[arg(long, value_name = "S", default_value_t = LIMIT_S_DEFAULT,
          value_parser = clap::value_parser!(u64).range(1..))]
    limit_s: u64,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Amount {
    /// Iterations of the whole program, split evenly over its threads (about 1 ns each)
    #[arg(long, visible_alias = "iterations", value_name = "K",
          value_parser = clap::value_parser!(u64).range(1..))]
    total_iterations: Option<u64>,
    /// Iterations of each thread: the work grows with N
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    iterations_per_thread: Option<u64>,
    /// Compute until each thread has used M ms of CPU time
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u64).range(1..))]
    cpu_ms: Option<u64>,
    /// Compute until SIGTERM, SIGINT, or the end of the parent; exit with 0
    #[arg(long)]
    until_stopped: bool,
}

impl Busy {
    pub fn run(&self) -> Result<(), Error> {
        let reporter = Reporter::from_environment()?;
        if self.amount.until_stopped {
            return self.run_until_stopped(&reporter);
        }
        measure(&reporter, self.threads, |index| Ok(self.work(index)))?;
        Ok(())
    }

    /// The work of one thread; returns its iterations.
    fn work(&self, index: u32) -> u64 {
        if let Some(cpu_ms) = self.amount.cpu_ms {
            return spin_until_cpu(Duration::from_millis(cpu_ms));
        }
        let iterations = match self.amount.total_iterations {
            Some(total) => share(total, self.threads, index),
            None => self.amount.iterations_per_thread.unwrap_or(0),
        };
        spin(iterations);
        iterations
    }

    fn run_until_stopped(&self, reporter: &Reporter) -> Result<(), Error> {
        let stop = Stop::watch()?;
        let stopped = AtomicBool::new(false);
        let work = |_| {
            let mut iterations = 0;
            while !stopped.load(Ordering::Relaxed) {
                spin(CHUNK);
                iterations += CHUNK;
            }
            Ok(iterations)
        };
        reporter.ready()?;
        measure_beside(reporter, self.threads, work, || {
            stop.wait(Duration::from_secs(self.limit_s));
            stopped.store(true, Ordering::Relaxed);
        })?;
        Ok(())
    }
}
