//! One lock that every thread holds during part of each operation.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use concurve_reporter::Reporter;

use crate::draw::exponential_of;
use crate::error::Error;
use crate::work::{OperationArgs, spin};
use crate::workers::{measure, threads};

/// Operations that a worker claims at a time: enough to make the cost of a claim negligible, and so
/// few that all workers finish at about the same time, since the last one has no contention.
const CLAIM: u64 = 16;

/// Do a fixed number of operations, each of which holds one mutex for a share of its time
///
/// The lock limits the speed-up to 100 / hold-percent. It is std's mutex: a short spin, then a
/// futex wait.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  concurve-targets mutex --threads 4 --operations 100000 --hold-percent 80 --operation-us 5")]
pub struct Mutex {
    /// Threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = threads())]
    threads: u32,
    /// Operations of the whole program
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    operations: u64,
    /// Share of each operation during which the lock is held
    #[arg(long, value_name = "P", default_value_t = 50, value_parser = clap::value_parser!(u64).range(0..=100))]
    hold_percent: u64,
    /// Draw the lengths of operations from the exponential distribution, the same ones in every
    /// run. Operations of equal length synchronise, so that the lock is hardly contended
    #[arg(long)]
    vary: bool,
    #[command(flatten)]
    operation: OperationArgs,
}

impl Mutex {
    pub fn run(&self) -> Result<(), Error> {
        let reporter = Reporter::from_environment()?;
        let iterations = self.operation.iterations();
        reporter.fact("iterations_per_operation", iterations)?;

        let lock = std::sync::Mutex::new(0u64);
        let claims = Claims::of(self.operations);
        measure(&reporter, self.threads, |_| {
            let mut done = 0;
            while let Some(operations) = claims.next() {
                done += operations.end - operations.start;
                for number in operations {
                    let (held, free) = self.parts(iterations, number);
                    if self.hold_percent > 0 {
                        let mut under_lock = lock.lock().unwrap_or_else(|it| it.into_inner());
                        spin(held);
                        *under_lock += 1;
                    }
                    spin(free);
                }
            }
            Ok(done)
        })?;

        let under_lock = lock.into_inner().unwrap_or_else(|it| it.into_inner());
        let expected = match self.hold_percent {
            0 => 0,
            _ => self.operations,
        };
        if under_lock != expected {
            return Err(Error::Broken(format!(
                "the lock was held {under_lock} times, not {expected}: mutual exclusion failed"
            )));
        }
        Ok(())
    }

    /// Iterations of an operation with the lock held, and without.
    fn parts(&self, iterations: u64, number: u64) -> (u64, u64) {
        let length = match self.vary {
            true => (iterations as f64 * exponential_of(number)) as u64,
            false => iterations,
        };
        let held = (u128::from(length) * u128::from(self.hold_percent) / 100) as u64;
        (held, length - held)
    }
}

/// The operations that are left, which workers claim a few at a time.
struct Claims {
    total: u64,
    claimed: AtomicU64,
}

impl Claims {
    fn of(total: u64) -> Self {
        let claimed = AtomicU64::new(0);
        Self { total, claimed }
    }

    fn next(&self) -> Option<Range<u64>> {
        let begin = self.claimed.fetch_add(CLAIM, Ordering::Relaxed);
        let left = self.total.checked_sub(begin)?;
        (left > 0).then(|| begin..begin + left.min(CLAIM))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_sum_to_the_total() {
        for total in [1, CLAIM - 1, CLAIM, CLAIM + 1, 1000] {
            let claims = Claims::of(total);
            let claimed = std::iter::from_fn(|| claims.next()).flatten();
            assert!(claimed.eq(0..total));
            assert_eq!(claims.next(), None);
        }
    }
}
