//! Threads that start together, are measured together, and are reported one by one.

use std::io::Write;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use concurve_reporter::Reporter;

use crate::error::Error;

/// Maximum number of threads that a target starts at once, except for thread-storm.
pub const THREADS_MAX: i64 = 30_000;

/// Parser of `--threads`.
pub fn threads() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=THREADS_MAX)
}

/// The share of `total` for worker `index` of `workers`: the shares differ by at most 1.
pub fn share(total: u64, workers: u32, index: u32) -> u64 {
    let workers = u64::from(workers);
    total / workers + u64::from(u64::from(index) < total % workers)
}

/// Name of a worker: of its thread, and of its figures on the report channel.
pub fn worker_name(index: u32) -> String {
    format!("worker-{index}")
}

/// Runs `work(index)` in `threads` threads named `worker-0`, `worker-1`, …, which start together.
/// `work` returns the number of its operations, and this function their sum. The phase `measure`
/// lasts from the common start until the last worker has ended.
///
/// The calling thread waits: a program with N workers has N + 1 threads.
pub fn measure<W>(reporter: &Reporter, threads: u32, work: W) -> Result<u64, Error>
where
    W: Fn(u32) -> Result<u64, Error> + Sync,
{
    measure_beside(reporter, threads, work, || ())
}

/// As [`measure`], while the calling thread does `beside`.
pub fn measure_beside<W>(
    reporter: &Reporter,
    threads: u32,
    work: W,
    beside: impl FnOnce(),
) -> Result<u64, Error>
where
    W: Fn(u32) -> Result<u64, Error> + Sync,
{
    let barrier = StartBarrier::default();
    let (results, begin_ns) = thread::scope(|scope| {
        let mut handles = Vec::new();
        for index in 0..threads {
            let (barrier, work) = (&barrier, &work);
            let spawned = thread::Builder::new()
                .name(worker_name(index))
                .spawn_scoped(scope, move || match barrier.pass() {
                    true => work(index),
                    false => Ok(0),
                })
                .map_err(Error::io(|| {
                    format!("start thread {} of {threads}", index + 1)
                }));
            match spawned {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    barrier.decide(false);
                    return Err(error);
                }
            }
        }
        barrier.wait_for(threads);
        let begin = reporter.begin("measure");
        barrier.decide(begin.is_ok());
        if begin.is_ok() {
            beside();
        }
        let results: Vec<_> = handles
            .into_iter()
            .map(|handle| match handle.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect();
        Ok((results, begin?))
    })?;
    let end_ns = reporter.end("measure")?;
    let operations: Vec<u64> = results.into_iter().collect::<Result<_, _>>()?;
    report(reporter, &operations, end_ns - begin_ns)
}

/// Reports what `operations` each worker did in `measured_ns`; returns their sum.
pub fn report(reporter: &Reporter, operations: &[u64], measured_ns: u64) -> Result<u64, Error> {
    let total: u64 = operations.iter().sum();
    let seconds = measured_ns as f64 / 1e9;
    reporter.indicator("operations", total as f64, None)?;
    reporter.indicator("compute_seconds", seconds, Some("s"))?;
    for (index, done) in operations.iter().enumerate() {
        let worker = worker_name(index as u32);
        reporter.worker_indicator("worker_operations", *done as f64, None, &worker)?;
    }
    // Also for readers of standard output; a closed output is no error.
    let _ = writeln!(
        std::io::stdout(),
        "operations {total}\ncompute_seconds {seconds:.9}"
    );
    Ok(total)
}

/// Holds the workers until all have started. If one cannot be started, the others end without
/// work.
#[derive(Default)]
struct StartBarrier {
    state: Mutex<BarrierState>,
    arrival: Condvar,
    opening: Condvar,
}

#[derive(Default)]
struct BarrierState {
    arrived: u32,
    /// Whether the workers are to work; `None` until all have started or one could not be started.
    decision: Option<bool>,
}

impl StartBarrier {
    /// Waits for the decision; returns whether the worker is to work.
    fn pass(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.arrived += 1;
        self.arrival.notify_one();
        loop {
            match state.decision {
                Some(decision) => return decision,
                None => {
                    state = self
                        .opening
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner)
                }
            }
        }
    }

    fn wait_for(&self, workers: u32) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let all = self
            .arrival
            .wait_while(state, |state| state.arrived < workers);
        drop(all.unwrap_or_else(PoisonError::into_inner));
    }

    fn decide(&self, decision: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.decision = Some(decision);
        self.opening.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_differ_by_one_at_most_and_sum_to_the_total() {
        for (total, workers) in [(10, 3), (2, 5), (0, 4), (7, 7), (u64::MAX, 3)] {
            let shares: Vec<u64> = (0..workers).map(|it| share(total, workers, it)).collect();
            assert_eq!(shares.iter().sum::<u64>(), total);
            assert!(shares[0] - shares[workers as usize - 1] <= 1);
        }
    }

    #[test]
    fn every_worker_works_once_and_an_error_of_one_is_the_error_of_all() {
        let reporter = Reporter::silent();
        assert_eq!(
            measure(&reporter, 5, |index| Ok(u64::from(index))).unwrap(),
            10
        );
        let failed = measure(&reporter, 3, |index| match index {
            1 => Err(Error::Broken("a worker failed".to_owned())),
            _ => Ok(1),
        });
        assert!(matches!(failed, Err(Error::Broken(_))));
    }
}
