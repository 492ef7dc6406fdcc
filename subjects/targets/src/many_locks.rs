//! An idle pool of threads: each is parked on a lock of its own, and one is woken at intervals.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use clap::Args;
use concurve_reporter::Reporter;

use crate::error::Error;
use crate::work::{OperationArgs, spin};
use crate::workers::{measure_beside, share, threads};

/// Park N threads on N futexes and wake them in turn, at long intervals
///
/// Each wake-up is one operation. Futex samples show N addresses, and no lock is contended.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  concurve-targets many-locks --threads 16 --operations 100 --every-ms 10"
)]
pub struct ManyLocks {
    /// Threads of the pool
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = threads())]
    threads: u32,
    /// Wake-ups of the whole pool, distributed round robin
    #[arg(long, value_name = "K", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    operations: u64,
    /// Time from one wake-up to the next
    #[arg(long, value_name = "M", default_value_t = 10)]
    every_ms: u64,
    #[command(flatten)]
    operation: OperationArgs,
}

/// The number of operations that were assigned to one thread.
#[derive(Default)]
struct Seat {
    dealt: Mutex<u64>,
    changed: Condvar,
}

impl ManyLocks {
    pub fn run(&self) -> Result<(), Error> {
        let reporter = Reporter::from_environment()?;
        let iterations = self.operation.iterations();
        let seats: Vec<Seat> = (0..self.threads).map(|_| Seat::default()).collect();
        let work = |index: u32| {
            let seat = &seats[index as usize];
            let due = share(self.operations, self.threads, index);
            for done in 0..due {
                seat.wait_beyond(done);
                spin(iterations);
            }
            Ok(due)
        };
        measure_beside(&reporter, self.threads, work, || {
            for operation in 0..self.operations {
                thread::sleep(Duration::from_millis(self.every_ms));
                seats[(operation % u64::from(self.threads)) as usize].deal();
            }
        })?;
        Ok(())
    }
}

impl Seat {
    fn deal(&self) {
        *self.dealt.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_one();
    }

    fn wait_beyond(&self, done: u64) {
        let dealt = self.dealt.lock().unwrap_or_else(PoisonError::into_inner);
        let more = self.changed.wait_while(dealt, |dealt| *dealt <= done);
        drop(more.unwrap_or_else(PoisonError::into_inner));
    }
}
