//! One cache line that every CPU writes.

use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use concurve_reporter::Reporter;
use crossbeam_utils::CachePadded;

use crate::error::Error;
use crate::workers::{measure, share, threads};

/// Count with atomic additions on one cache line, or on one per thread
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  concurve-targets shared-counter --threads 2 --operations 50000000            coherency
  concurve-targets shared-counter --threads 2 --operations 50000000 --padded   none of it")]
pub struct SharedCounter {
    /// Threads that count
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = threads())]
    threads: u32,
    /// Additions of the whole program, split evenly over its threads
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    operations: u64,
    /// Use a counter per thread, each on a cache line of its own
    #[arg(long)]
    padded: bool,
}

impl SharedCounter {
    pub fn run(&self) -> Result<(), Error> {
        let counters = self.counters();
        measure(&Reporter::from_environment()?, self.threads, |index| {
            let counter = &counters[index as usize % counters.len()];
            let due = share(self.operations, self.threads, index);
            for _ in 0..due {
                counter.fetch_add(1, Ordering::Relaxed);
            }
            Ok(due)
        })?;
        let counted: u64 = counters.iter().map(|it| it.load(Ordering::Relaxed)).sum();
        if counted != self.operations {
            return Err(Error::Broken(format!(
                "counted {counted} of {} additions",
                self.operations
            )));
        }
        Ok(())
    }

    fn counters(&self) -> Vec<CachePadded<AtomicU64>> {
        let number = if self.padded { self.threads } else { 1 };
        (0..number).map(|_| CachePadded::default()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_gives_each_thread_cache_lines_of_its_own() {
        let counters = |padded| {
            let target = SharedCounter {
                threads: 3,
                operations: 1,
                padded,
            };
            target.counters()
        };
        assert_eq!(counters(false).len(), 1);
        let addresses: Vec<usize> = counters(true)
            .iter()
            .map(|it| &raw const **it as usize)
            .collect();
        assert_eq!(addresses.len(), 3);
        assert!(addresses.windows(2).all(|two| two[1] - two[0] >= 128));
    }
}
