//! The rate at which a share of bad requests is reached: log-linear regression on windows, by
//! quasi-likelihood (McCullagh & Nelder, Generalized Linear Models, 2nd ed., 1989, ch. 6 and 9).
//! The share of waits that exceed a limit falls exponentially with the distance to saturation
//! (exactly in M/M/1; Kingman, The single server queue in heavy traffic, 1961), hence the log.
//!
//! Bad requests come in bursts, so a window of n requests says less than n independent ones would.
//! How much less is estimated from the scatter of the windows around the curve (their dispersion),
//! and the interval is a profile of the quasi-likelihood: all rates that an F test does not reject.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Requests of one window at a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Count {
    pub rate: f64,
    pub requests: f64,
    pub bad: f64,
}

/// The rate that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Root {
    pub rate: f64,
    /// How fast the log of the share of bad requests grows with the rate.
    pub slope: f64,
    dispersion: f64,
    /// Number of independent bad requests that would give the same precision.
    bursts: f64,
    windows: usize,
    deviance: f64,
}

/// With fewer windows their scatter cannot be estimated.
const WINDOWS_MIN: usize = 6;
/// The dispersion is estimated from the bursts, and too low on average if there are few: it is
/// increased by the share of this constant over their number. From simulation, see decision 12.
const FEW_BURSTS: f64 = 15.0;
const STEPS: usize = 60;
const LOG_MAX: f64 = 30.0;

/// The rate at which the share of bad requests is `share`; none if the windows do not show that
/// it grows with the rate.
pub fn root(counts: &[Count], share: f64) -> Option<Root> {
    if counts.len() < WINDOWS_MIN {
        return None;
    }
    let center = counts.iter().map(|it| it.rate).sum::<f64>() / counts.len() as f64;
    let (level, slope) = line(counts, center)?;
    if !(slope.is_finite() && slope > 0.0) {
        return None;
    }
    let rate = center + (share.ln() - level) / slope;
    if !rate.is_finite() || rate <= 0.0 {
        return None;
    }
    let fitted = |it: &Count| level + slope * (it.rate - center);
    let pearson: f64 = counts.iter().map(|it| pearson(it, fitted(it))).sum();
    let dispersion = (pearson / (counts.len() - 2) as f64).max(1.0);
    Some(Root {
        rate,
        slope,
        dispersion,
        bursts: counts.iter().map(|it| it.bad).sum::<f64>() / dispersion,
        windows: counts.len(),
        deviance: counts.iter().map(|it| deviance(it, fitted(it))).sum(),
    })
}

impl Root {
    /// The rates below and above which the root lies with probability `tail` at most, each.
    /// Infinite, or 0, where the windows do not say.
    pub fn interval(&self, counts: &[Count], share: f64, tail: (f64, f64)) -> (f64, f64) {
        let student = StudentsT::new(0.0, 1.0, (self.windows - 2) as f64)
            .expect("there are more than two windows");
        let dispersion = self.dispersion * (1.0 + FEW_BURSTS / self.bursts);
        let bound = |tail: f64| student.inverse_cdf(1.0 - tail).powi(2) * dispersion;
        let rejected = |rate: f64, bound: f64| {
            let slope = slope_through(counts, rate, share);
            let fitted = |it: &Count| share.ln() + slope * (it.rate - rate);
            let sum: f64 = counts.iter().map(|it| deviance(it, fitted(it))).sum();
            sum - self.deviance > bound
        };
        let low = edge(self.rate, 0.0, |rate| rejected(rate, bound(tail.0)));
        let high = edge(self.rate, 10.0 * self.rate, |rate| {
            rejected(rate, bound(tail.1))
        });
        (
            low,
            if high >= 10.0 * self.rate {
                f64::INFINITY
            } else {
                high
            },
        )
    }
}

/// The rate at which a test begins to reject, between a rate that it accepts and `far`.
fn edge(from: f64, far: f64, rejected: impl Fn(f64) -> bool) -> f64 {
    // Outwards in growing steps, so that the first rejection counts, then halved.
    let (mut inside, mut step) = (from, (far - from) * 1e-3);
    let mut outside = loop {
        let next = inside + step;
        if (far - next) * step <= 0.0 {
            return far;
        }
        if rejected(next) {
            break next;
        }
        inside = next;
        step *= 1.5;
    };
    for _ in 0..40 {
        let middle = f64::midpoint(inside, outside);
        match rejected(middle) {
            true => outside = middle,
            false => inside = middle,
        }
    }
    f64::midpoint(inside, outside)
}

/// Logs beyond are counts of 0, or of everything.
fn expected(count: &Count, log_share: f64) -> f64 {
    count.requests * log_share.clamp(-LOG_MAX, LOG_MAX).exp()
}

/// The deviance of a window: twice the difference of its log-likelihood to that of a model with the
/// window's own share of bad requests.
fn deviance(count: &Count, log_share: f64) -> f64 {
    let expected = expected(count, log_share);
    let own = match count.bad {
        0.0 => 0.0,
        bad => bad * (bad / expected).ln(),
    };
    2.0 * (own - (count.bad - expected))
}

fn pearson(count: &Count, log_share: f64) -> f64 {
    let expected = expected(count, log_share);
    (count.bad - expected).powi(2) / expected
}

/// Level at `center` and slope of the log, by Newton's method.
fn line(counts: &[Count], center: f64) -> Option<(f64, f64)> {
    let (bad, all) = counts
        .iter()
        .fold((0.0, 0.0), |sum, it| (sum.0 + it.bad, sum.1 + it.requests));
    if bad == 0.0 {
        return None;
    }
    let scale = counts
        .iter()
        .map(|it| (it.rate - center).abs())
        .fold(0.0, f64::max);
    if scale == 0.0 {
        return None;
    }
    let (mut level, mut slope) = ((bad / all).ln(), 0.0);
    let lacks = |level: f64, slope: f64| -> f64 {
        let fitted = |it: &Count| level + slope * (it.rate - center) / scale;
        counts.iter().map(|it| deviance(it, fitted(it))).sum()
    };
    for _ in 0..STEPS {
        let (mut g0, mut g1, mut h00, mut h01, mut h11) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for count in counts {
            let x = (count.rate - center) / scale;
            let weight = expected(count, level + slope * x);
            let off = count.bad - weight;
            g0 += off;
            g1 += off * x;
            h00 += weight;
            h01 += weight * x;
            h11 += weight * x * x;
        }
        let determinant = h00 * h11 - h01 * h01;
        if determinant <= 1e-12 * h00 * h11 {
            break;
        }
        let step = (
            (g0 * h11 - g1 * h01) / determinant,
            (g1 * h00 - g0 * h01) / determinant,
        );
        // Halved until it is no step back.
        let before = lacks(level, slope);
        let mut share = 1.0;
        while share > 1e-6 && lacks(level + share * step.0, slope + share * step.1) > before {
            share /= 2.0;
        }
        level += share * step.0;
        slope += share * step.1;
        if (share * step.0).abs() + (share * step.1).abs() < 1e-9 {
            break;
        }
    }
    Some((level, slope / scale))
}

/// The slope that fits best among lines that reach `share` at `rate`; 0 at least.
fn slope_through(counts: &[Count], rate: f64, share: f64) -> f64 {
    let scale = counts
        .iter()
        .map(|it| (it.rate - rate).abs())
        .fold(0.0, f64::max);
    // The derivative of the log-likelihood falls with the slope: its zero is found by halving.
    let derivative = |slope: f64| -> f64 {
        let of = |it: &Count| {
            let x = (it.rate - rate) / scale;
            (it.bad - expected(it, share.ln() + slope * x)) * x
        };
        counts.iter().map(of).sum()
    };
    let (mut low, mut high) = (0.0, 1.0);
    if scale == 0.0 || derivative(low) <= 0.0 {
        return 0.0;
    }
    while derivative(high) > 0.0 && high < 1e6 {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        match derivative(middle) > 0.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    f64::midpoint(low, high) / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows that lie on a curve: log share = (rate − 500) / 40.
    fn windows(rates: &[f64]) -> Vec<Count> {
        let bad = |rate: f64| 1e5 * ((rate - 500.0) / 40.0).exp();
        let of = |rate: &f64| Count {
            rate: *rate,
            requests: 1e5,
            bad: bad(*rate).round(),
        };
        rates.iter().map(of).collect()
    }

    const RATES: [f64; 8] = [280.0, 300.0, 310.0, 320.0, 330.0, 340.0, 350.0, 400.0];

    #[test]
    fn the_root_of_a_known_curve() {
        let counts = windows(&RATES);
        let root = root(&counts, 0.01).unwrap();
        let truth = 500.0 + 40.0 * 0.01_f64.ln();
        assert!((root.rate / truth - 1.0).abs() < 1e-3, "{root:?} {truth}");
        assert!((root.slope * 40.0 - 1.0).abs() < 1e-2);
        let (low, high) = root.interval(&counts, 0.01, (0.025, 0.025));
        assert!(
            low < truth && truth < high && high - low < 4.0,
            "{low} {high}"
        );
    }

    #[test]
    fn scatter_widens_the_interval() {
        let calm = windows(&RATES);
        let mut rough = calm.clone();
        for (index, count) in rough.iter_mut().enumerate() {
            count.bad *= if index % 2 == 0 { 1.5 } else { 0.6 };
        }
        let width = |counts: &[Count]| {
            let found = root(counts, 0.01).unwrap();
            let (low, high) = found.interval(counts, 0.01, (0.025, 0.025));
            high - low
        };
        assert!(width(&rough) > 3.0 * width(&calm));
    }

    #[test]
    fn no_root_where_nothing_shows_one() {
        let mut counts = windows(&RATES);
        assert!(root(&counts[..5], 0.01).is_none());
        for count in &mut counts {
            count.bad = 0.0;
        }
        assert!(root(&counts, 0.01).is_none());
        let mut falling = windows(&RATES);
        let last = falling.len() - 1;
        for index in 0..falling.len() / 2 {
            let bad = falling[index].bad;
            falling[index].bad = falling[last - index].bad;
            falling[last - index].bad = bad;
        }
        assert!(root(&falling, 0.01).is_none());
    }
}
