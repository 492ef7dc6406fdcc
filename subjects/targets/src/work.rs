//! Work that takes CPU time and nothing else: no memory, no system calls.

use std::hint::black_box;
use std::time::Duration;

use clap::Args;
use concurve_clock::thread_cpu_ns;

/// Iterations between two checks of a clock or a flag: about a microsecond.
pub const CHUNK: u64 = 1000;

/// Runs `iterations` steps of a linear congruential generator. Each step depends on the one before,
/// so neither the compiler nor the CPU can shorten or overlap them.
#[inline(never)]
pub fn spin(iterations: u64) {
    let mut state: u64 = black_box(1);
    for _ in 0..iterations {
        state = black_box(
            state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1),
        );
    }
    black_box(state);
}

/// Spins until the calling thread has used `target` of CPU time since its start; returns the
/// iterations.
pub fn spin_until_cpu(target: Duration) -> u64 {
    let mut iterations = 0;
    while thread_cpu() < target {
        spin(CHUNK);
        iterations += CHUNK;
    }
    iterations
}

/// CPU time of the calling thread.
pub fn thread_cpu() -> Duration {
    Duration::from_nanos(thread_cpu_ns())
}

/// The amount of work of an operation.
#[derive(Debug, Args)]
pub struct OperationArgs {
    /// CPU time of an operation in µs; calibrated when the program starts
    #[arg(long, value_name = "U", default_value_t = 5.0, value_parser = positive)]
    operation_us: f64,
    /// Work of an operation in iterations, the same in every run: no calibration
    #[arg(long, value_name = "I", conflicts_with = "operation_us",
          value_parser = clap::value_parser!(u64).range(1..))]
    operation_iterations: Option<u64>,
}

impl OperationArgs {
    /// Iterations of `spin` that make one operation.
    pub fn iterations(&self) -> u64 {
        self.operation_iterations.unwrap_or_else(|| {
            let iterations = self.operation_us * iterations_per_us();
            (iterations.round() as u64).max(1)
        })
    }
}

/// Speed of this CPU: the best of several short runs, because interruptions only slow a run down.
fn iterations_per_us() -> f64 {
    const ITERATIONS: u64 = 500_000;
    (0..8)
        .map(|_| {
            let begin = thread_cpu();
            spin(ITERATIONS);
            let taken_us = (thread_cpu() - begin).as_secs_f64() * 1e6;
            ITERATIONS as f64 / taken_us
        })
        .fold(0.0, f64::max)
}

/// Parses a finite number above 0.
pub fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err("must be a number above 0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinning_ends_when_the_threads_own_clock_says_so() {
        let target = Duration::from_millis(5);
        std::thread::spawn(move || {
            assert!(spin_until_cpu(target) > 0);
            assert!(thread_cpu() >= target);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn only_finite_numbers_above_zero_are_positive() {
        assert_eq!(positive("0.5"), Ok(0.5));
        for bad in ["0", "-1", "nan", "inf", "x", ""] {
            assert!(positive(bad).is_err(), "{bad}");
        }
    }
}
