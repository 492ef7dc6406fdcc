//! A program whose cost varies from run to run in a known way.

use std::io::Write;
use std::process;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use concurve_reporter::Reporter;

use crate::draw::{split_mix_64, uniform};
use crate::error::Error;
use crate::work::{positive, spin_until_cpu};
use crate::workers::measure;

/// Use CPU time drawn from a lognormal distribution of known mean and spread
///
/// One draw a run: runs with different seeds are independent samples, so that statistics of them
/// can be compared with the true values. The draw is reported as `drawn_cpu_seconds`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  concurve-targets noisy --mean-ms 20 --cv 0.05 --seed 7")]
pub struct Noisy {
    /// Mean CPU time
    #[arg(long, value_name = "M", value_parser = positive)]
    mean_ms: f64,
    /// Coefficient of variation: standard deviation over mean
    #[arg(long, value_name = "CV", default_value_t = 0.05, value_parser = spread)]
    cv: f64,
    /// Seed of the draw [default: from the time and the process id]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Draw and report, and use no CPU time
    #[arg(long)]
    dry_run: bool,
}

impl Noisy {
    pub fn run(&self) -> Result<(), Error> {
        let reporter = Reporter::from_environment()?;
        let seed = self.seed.unwrap_or_else(seed_of_this_run);
        let seconds = lognormal(self.mean_ms / 1e3, self.cv, seed);
        reporter.fact("seed", seed)?;
        reporter.indicator("drawn_cpu_seconds", seconds, Some("s"))?;
        let _ = writeln!(std::io::stdout(), "drawn_cpu_seconds {seconds:.9}");
        if !self.dry_run {
            let cpu = Duration::try_from_secs_f64(seconds)
                .map_err(|_| Error::Usage(format!("--mean-ms {} is too long", self.mean_ms)))?;
            measure(&reporter, 1, |_| Ok(spin_until_cpu(cpu)))?;
        }
        Ok(())
    }
}

/// A draw from the lognormal distribution with this mean and coefficient of variation:
/// exp(μ + σ Z) with σ² = ln(1 + cv²) and μ = ln mean − σ²/2.
fn lognormal(mean: f64, cv: f64, seed: u64) -> f64 {
    let variance = cv.mul_add(cv, 1.0).ln();
    (mean.ln() - variance / 2.0 + variance.sqrt() * normal(seed)).exp()
}

/// A standard normal draw: Box and Muller's method on the first two numbers of the seed.
fn normal(seed: u64) -> f64 {
    let mut state = seed;
    let radius = (-2.0 * uniform(&mut state).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(&mut state)).cos()
}

fn seed_of_this_run() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut state = since_epoch.map_or(0, |it| it.as_nanos() as u64);
    split_mix_64(&mut state) ^ u64::from(process::id())
}

fn spread(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(cv) if (0.0..=10.0).contains(&cv) => Ok(cv),
        _ => Err("must be a number from 0 to 10".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_mean_and_the_spread_asked_for() {
        const DRAWS: u64 = 100_000;
        let draws: Vec<f64> = (0..DRAWS).map(|seed| lognormal(2.0, 0.5, seed)).collect();
        let mean = draws.iter().sum::<f64>() / DRAWS as f64;
        let variance = draws.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / (DRAWS - 1) as f64;
        let log_mean = draws.iter().map(|it| it.ln()).sum::<f64>() / DRAWS as f64;
        // Five standard errors of each.
        assert!((mean - 2.0).abs() < 0.016, "{mean}");
        assert!(
            (variance.sqrt() / mean - 0.5).abs() < 0.015,
            "{}",
            variance.sqrt() / mean
        );
        assert!(
            (log_mean - (2f64.ln() - 1.25f64.ln() / 2.0)).abs() < 0.0075,
            "{log_mean}"
        );
    }

    #[test]
    fn no_spread_is_the_mean_and_a_seed_decides_the_draw() {
        assert!((lognormal(3.0, 0.0, 9) - 3.0).abs() < 1e-12);
        assert_eq!(lognormal(3.0, 0.2, 9), lognormal(3.0, 0.2, 9));
        assert_ne!(lognormal(3.0, 0.2, 9), lognormal(3.0, 0.2, 10));
    }
}
