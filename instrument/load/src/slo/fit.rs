//! The rate at which a share of bad requests is reached: regression on windows, by quasi-likelihood
//! (McCullagh & Nelder, Generalized Linear Models, 2nd ed., 1989, ch. 6 and 9).
//! The share of waits that exceed a limit falls exponentially with the distance to saturation
//! (exactly in M/M/1; Kingman, The single server queue in heavy traffic, 1961), hence the log. Where
//! some requests are bad at any rate the log is bent: the share to a power is a line instead (Box &
//! Cox, An analysis of transformations, 1964), and no power that agrees with the windows is left out.
//!
//! Bad requests come in bursts, so a window of n requests says less than n independent ones would.
//! How much less is estimated from the scatter of the windows around the curve (their dispersion),
//! and the interval is a profile of the quasi-likelihood: all rates that an F test does not reject.

use std::cmp::Ordering;

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Requests of one window at a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Count {
    pub rate: f64,
    pub requests: f64,
    pub bad: f64,
}

impl Count {
    fn share(&self) -> f64 {
        self.bad / self.requests
    }
}

/// The rate that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Root {
    pub rate: f64,
    /// How fast the log of the share of bad requests grows with the rate.
    pub slope: f64,
    /// Standard error of the slope.
    pub slope_error: f64,
    /// Scatter of the log of the share in one window.
    pub window_error: f64,
    /// Standard error of the rate, if the curve is known to be as bent as it was found to be.
    error: f64,
    shape: Shape,
    dispersion: f64,
    windows: usize,
    /// Of the windows, and of the shape from a straight line.
    deviance: f64,
}

/// With fewer windows their scatter cannot be estimated.
const WINDOWS_MIN: usize = 6;
/// The dispersion is estimated from the bursts, and too low on average if there are few: it is
/// increased by the share of this constant over their number. From simulation, see decision 12. It
/// is greater for a line: bursts that are missing make its slope too steep as well.
const FEW_BURSTS: [f64; 2] = [8.0, 12.0];
/// Bad requests that must be expected, where none is seen, for a share to be kept.
const NONE_SEEN: f64 = 4.0;
/// A greater F of the best step is no chance: windows have heavier tails than the normal distribution.
pub const STEP_SURE: f64 = 25.0;
/// A greater one may be a step: the critical value of Andrews for 1 %.
pub const STEP_MAYBE: f64 = 12.4;
/// Share of the pairs of windows, one before and one after a step, that it puts in the same order.
const STEP_ABOVE: f64 = 0.85;
const STEPS: usize = 60;
/// The variance of the number of bad requests grows with this power of its mean, between that of bursts
/// of one size (1) and that of bursts that grow as fast as their number (1.5). With the latter, windows
/// without a bad request say more than they know where bursts are rare.
const POWER: f64 = 1.25;
const LOG_MAX: f64 = 30.0;
/// How the share may grow with the rate.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shape {
    /// This power of the share is a line; its log for 0. Below 0 the curve is steeper where the share is
    /// greater.
    Power(f64),
    /// This part of the share that is sought is bad at any rate, and the log of the rest is a line.
    Floor(f64),
}

const STRAIGHT: Shape = Shape::Power(0.0);
const SHAPES: [Shape; 9] = [
    STRAIGHT,
    Shape::Power(-3.0),
    Shape::Power(-2.0),
    Shape::Power(-1.0),
    Shape::Power(-0.5),
    Shape::Power(0.5),
    Shape::Floor(0.25),
    Shape::Floor(0.5),
    Shape::Floor(0.75),
];
/// How bent curves of servers are, and how much is bad at any rate: a standard deviation around 0,
/// which counts as an observation.
const USUAL: f64 = 0.5;
/// No curve falls farther below the share that is sought, in logs: windows without a bad request are
/// no proof that none can be.
const DEPTH: f64 = 4.0;

/// The rate at which the share of bad requests is `share`; none if the windows do not show that
/// it grows with the rate. The windows are in the order of their times.
pub fn root(counts: &[Count], share: f64) -> Option<Root> {
    let straight = straight_root(counts, share)?;
    let of = |shape: &Shape| match *shape {
        STRAIGHT => Some(straight),
        shape => root_of(counts, share, shape, &straight),
    };
    let fits: Vec<Root> = SHAPES.iter().filter_map(of).collect();
    // A line that is not bent enough scatters more than the windows do.
    let dispersion = fits.iter().map(|it| it.dispersion);
    let dispersion = dispersion.fold(f64::INFINITY, f64::min);
    let lacks = |it: &Root| it.deviance + it.shape.unusual() * dispersion;
    let best = fits.iter().min_by(|a, b| lacks(a).total_cmp(&lacks(b)))?;
    Some(Root {
        deviance: lacks(best),
        ..*best
    })
}

/// As [`root`], where the log of the share is a line.
pub fn straight_root(counts: &[Count], share: f64) -> Option<Root> {
    if counts.len() < WINDOWS_MIN {
        return None;
    }
    let center = counts.iter().map(|it| it.rate).sum::<f64>() / counts.len() as f64;
    let (level, slope) = line(counts, center)?;
    let curve = Curve {
        share,
        shape: STRAIGHT,
    };
    curve.root(counts, center, level - share.ln(), slope)
}

/// The root of a curve of a shape, found from that of the straight one.
fn root_of(counts: &[Count], share: f64, shape: Shape, straight: &Root) -> Option<Root> {
    let curve = Curve { share, shape };
    let center = counts.iter().map(|it| it.rate).sum::<f64>() / counts.len() as f64;
    // With the same share and slope at the centre, as far as the shape has them.
    let logs = straight.slope * (center - straight.rate);
    let level = curve.growth(logs.clamp(-DEPTH, DEPTH));
    let slope = straight.slope / curve.chain(level);
    let (level, slope) = curve.fitted(counts, center, level, slope)?;
    curve.root(counts, center, level, slope)
}

impl Shape {
    /// What a shape takes from the likelihood, in units of the dispersion.
    fn unusual(self) -> f64 {
        let (Self::Power(by) | Self::Floor(by)) = self;
        (by / USUAL).powi(2)
    }
}

/// Curves of the share over the rate: the line is 0 where the share is the one that is sought, and of
/// slope 1 in logs there.
#[derive(Debug, Clone, Copy)]
struct Curve {
    share: f64,
    shape: Shape,
}

impl Curve {
    /// The log of the share where the line has grown so much.
    fn log(&self, growth: f64) -> f64 {
        self.share.ln() + self.logs(growth)
    }

    /// The same relative to the share that is sought.
    fn logs(&self, growth: f64) -> f64 {
        match self.shape {
            STRAIGHT => growth,
            Shape::Power(power) => {
                let grown = 1.0 + power * growth;
                let logs = match grown > 0.0 {
                    true => grown.ln() / power,
                    false if power < 0.0 => LOG_MAX,
                    false => -DEPTH,
                };
                logs.max(-DEPTH)
            }
            Shape::Floor(part) => {
                let rest = 1.0 - part;
                (part + rest * (growth / rest).min(LOG_MAX).exp()).ln()
            }
        }
    }

    /// The line where the log of the share is so far from the one that is sought.
    fn growth(&self, logs: f64) -> f64 {
        match self.shape {
            STRAIGHT => logs,
            Shape::Power(power) => ((power * logs).exp() - 1.0) / power,
            Shape::Floor(part) => {
                let rest = 1.0 - part;
                let grown = ((logs.exp() - part) / rest).ln();
                rest * grown.max(-DEPTH)
            }
        }
    }

    /// How fast the log of the share grows with the line.
    fn chain(&self, growth: f64) -> f64 {
        let logs = self.logs(growth);
        match self.shape {
            STRAIGHT => 1.0,
            Shape::Power(_) if logs <= -DEPTH => 0.0,
            Shape::Power(power) => (-power * logs).exp(),
            Shape::Floor(part) => 1.0 - part * (-logs).exp(),
        }
    }

    fn deviance(&self, count: &Count, growth: f64) -> f64 {
        deviance(count, self.log(growth))
    }

    /// As [`score`], by the line.
    fn score(&self, count: &Count, growth: f64) -> (f64, f64) {
        let (off, weight) = score(count, self.log(growth));
        let chain = self.chain(growth);
        (off * chain, weight * chain * chain)
    }

    /// Level and slope that fit best, by Fisher's method of scoring from given ones.
    fn fitted(
        &self,
        counts: &[Count],
        center: f64,
        mut level: f64,
        mut slope: f64,
    ) -> Option<(f64, f64)> {
        let lacks = |level: f64, slope: f64| -> f64 {
            let of = |it: &Count| self.deviance(it, level + slope * (it.rate - center));
            counts.iter().map(of).sum()
        };
        let mut before = lacks(level, slope);
        for _ in 0..STEPS {
            let (mut g0, mut g1, mut h00, mut h01, mut h11) = (0.0, 0.0, 0.0, 0.0, 0.0);
            for count in counts {
                let x = count.rate - center;
                let (off, weight) = self.score(count, level + slope * x);
                (g0, g1) = (g0 + off, g1 + off * x);
                (h00, h01, h11) = (h00 + weight, h01 + weight * x, h11 + weight * x * x);
            }
            let determinant = h00 * h11 - h01 * h01;
            if determinant.is_nan() || determinant <= 1e-12 * h00 * h11 {
                break;
            }
            let by_level = (g0 * h11 - g1 * h01) / determinant;
            let by_slope = (g1 * h00 - g0 * h01) / determinant;
            // Halved until it is no step back.
            let (mut part, mut after) = (1.0, lacks(level + by_level, slope + by_slope));
            while part > 1e-3 && (after.is_nan() || after > before) {
                part /= 2.0;
                after = lacks(level + part * by_level, slope + part * by_slope);
            }
            if after.is_nan() || after > before {
                break;
            }
            level += part * by_level;
            slope += part * by_slope;
            let gain = before - after;
            before = after;
            if gain <= 1e-7 * before {
                break;
            }
        }
        slope.is_finite().then_some((level, slope))
    }

    /// The root of the line.
    fn root(&self, counts: &[Count], center: f64, level: f64, slope: f64) -> Option<Root> {
        if !(slope.is_finite() && slope > 0.0) {
            return None;
        }
        let rate = center - level / slope;
        if !rate.is_finite() || rate <= 0.0 {
            return None;
        }
        let growth = |it: &Count| level + slope * (it.rate - center);
        let dispersion = dispersion(counts, |it| self.log(growth(it)), 2, self.share);
        let (mut h00, mut h01, mut h11) = (0.0, 0.0, 0.0);
        for count in counts {
            let (x, weight) = (count.rate - rate, self.score(count, growth(count)).1);
            (h00, h01, h11) = (h00 + weight, h01 + weight * x, h11 + weight * x * x);
        }
        let about_slope = h11 - h01 * h01 / h00;
        if about_slope.is_nan() || about_slope <= 0.0 {
            return None;
        }
        let slope_variance = dispersion / about_slope;
        let root_variance = dispersion / h00 + slope_variance * (h01 / h00).powi(2);
        Some(Root {
            rate,
            slope,
            slope_error: slope_variance.sqrt(),
            window_error: (dispersion / h00 * counts.len() as f64).sqrt(),
            error: root_variance.sqrt() / slope,
            shape: self.shape,
            dispersion,
            windows: counts.len(),
            deviance: counts.iter().map(|it| self.deviance(it, growth(it))).sum(),
        })
    }

    /// The least deviance of a curve that reaches the share at `rate`, and does not fall.
    fn least_deviance(&self, counts: &[Count], rate: f64) -> f64 {
        let lacks = |slope: f64| -> f64 {
            let of = |it: &Count| self.deviance(it, slope * (it.rate - rate));
            counts.iter().map(of).sum()
        };
        if self.shape == STRAIGHT {
            return lacks(slope_through(counts, rate, self.share));
        }
        let distance = |it: &Count| (it.rate - rate).abs();
        let scale = counts.iter().map(distance).fold(0.0, f64::max);
        let of_log = |log: f64| lacks(log.exp() / scale);
        // A coarse search, and golden sections where it was best.
        let logs = (0..10).map(|it| f64::from(it) * 0.8 - 4.8);
        let tried = logs.map(|it| (of_log(it), it));
        let flat = lacks(0.0);
        let Some((best, at)) = tried.min_by(|a, b| a.0.total_cmp(&b.0)) else {
            return flat;
        };
        let (mut low, mut high) = (at - 0.8, at + 0.8);
        let (mut left, mut right) = (high - GOLDEN * 1.6, low + GOLDEN * 1.6);
        let (mut of_left, mut of_right) = (of_log(left), of_log(right));
        for _ in 0..8 {
            if of_left < of_right {
                (high, right, of_right) = (right, left, of_left);
                left = high - GOLDEN * (high - low);
                of_left = of_log(left);
            } else {
                (low, left, of_left) = (left, right, of_right);
                right = low + GOLDEN * (high - low);
                of_right = of_log(right);
            }
        }
        best.min(of_left).min(of_right).min(flat)
    }
}

/// Of an interval that is divided again and again.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// How many times greater the scatter of the windows around a model is than the variance function
/// says, their correlation included.
fn dispersion(
    counts: &[Count],
    fitted: impl Fn(&Count) -> f64,
    parameters: usize,
    share: f64,
) -> f64 {
    let residuals: Vec<f64> = counts.iter().map(|it| residual(it, fitted(it))).collect();
    let pearson: f64 = residuals.iter().map(|it| it * it).sum();
    // At least that of independent requests: windows that are all the same are not correlated.
    let scatter = pearson / (counts.len() - parameters) as f64;
    let dispersion = (scatter * correlation(&residuals)).max(powers(share).0);
    // Number of independent bursts that would give the same precision.
    let weight: f64 = counts.iter().map(|it| score(it, fitted(it)).1).sum();
    dispersion * (1.0 + FEW_BURSTS[parameters - 1] * dispersion / weight)
}

/// Whether the share at one rate, on all windows of a rate, is below a given one or above; `None`
/// if a test with this probability of a wrong rejection, on each side, does not tell.
pub fn is_kept(counts: &[Count], share: f64, tail: f64) -> Option<bool> {
    if counts.len() < WINDOWS_MIN {
        return None;
    }
    let (bad, all) = totals(counts);
    if bad == 0.0 {
        // Bursts of a usual size would be seen if there were some.
        return (all * share > NONE_SEEN).then_some(true);
    }
    // Where all are bad the share does not grow, and the windows have no weight.
    let log = (bad / all).ln().min(-1e-9);
    let of = |log: f64| -> f64 { counts.iter().map(|it| deviance(it, log)).sum() };
    let bound = quantile(counts.len() - 1, tail).powi(2) * dispersion(counts, |_| log, 1, share);
    (of(share.ln()) - of(log) > bound).then_some(bad / all < share)
}

/// Whether the server changed in the course of windows that a search placed near the root: a step
/// of the log of the share at some time explains the residuals much better than none (the greatest
/// F of all times is above `f_max`; Andrews, Tests for parameter instability, Econometrica 61, 1993).
pub fn changes(counts: &[Count], f_max: f64) -> bool {
    let windows = counts.len();
    if windows < 2 * WINDOWS_MIN {
        return false;
    }
    let center = counts.iter().map(|it| it.rate).sum::<f64>() / windows as f64;
    let Some((level, slope)) = line(counts, center) else {
        return false;
    };
    let fitted = |it: &Count| level + slope * (it.rate - center);
    let residuals: Vec<f64> = counts.iter().map(|it| residual(it, fitted(it))).collect();
    let variance = residuals.iter().map(|it| it * it).sum::<f64>() / (windows - 2) as f64;
    let columns = |it: &Count| {
        let weight = score(it, fitted(it)).1;
        (weight, weight * (it.rate - center), it.rate - center)
    };
    let (mut h00, mut h01, mut h11) = (0.0, 0.0, 0.0);
    for (weight, weighted, x) in counts.iter().map(columns) {
        (h00, h01, h11) = (h00 + weight, h01 + weighted, h11 + weighted * x);
    }
    let determinant = h00 * h11 - h01 * h01;
    let edge = windows / 6;
    (edge..windows - edge).any(|split| {
        let (mut sum, mut c0, mut c1) = (0.0, 0.0, 0.0);
        for (count, residual) in counts.iter().zip(&residuals).skip(split) {
            let (weight, weighted, _) = columns(count);
            sum += residual * weight.sqrt();
            (c0, c1) = (c0 + weight, c1 + weighted);
        }
        let explained = (c0 * c0 * h11 - 2.0 * c0 * c1 * h01 + c1 * c1 * h00) / determinant;
        let ratio = sum * sum / ((c0 - explained) * variance);
        let most = (windows - 2) as f64;
        ratio >= most || (most - 1.0) * ratio / (most - ratio) > f_max
    })
}

/// Whether the server changed in the course of windows at any rates, without a model of how the share
/// grows: only that it does not fall with the rate. The residuals of the least-squares curve of that
/// kind (Barlow et al., Statistical Inference under Order Restrictions, 1972) have a step in time that
/// is no chance. For windows that no line fits.
pub fn steps(counts: &[Count]) -> bool {
    let windows = counts.len();
    if windows < 2 * WINDOWS_MIN {
        return false;
    }
    let fitted = increasing(counts);
    let residual = |(it, fitted): (&Count, &f64)| it.share().sqrt() - fitted.sqrt();
    let residuals: Vec<f64> = counts.iter().zip(&fitted).map(residual).collect();
    let sum: f64 = residuals.iter().sum();
    let mean = sum / windows as f64;
    let total: f64 = residuals.iter().map(|it| (it - mean).powi(2)).sum();
    if total < 1e-12 {
        return false;
    }
    let edge = windows / 6;
    (edge..windows - edge).any(|split| {
        let before: f64 = residuals[..split].iter().sum();
        let off = before - mean * split as f64;
        let between = off * off * windows as f64 / (split * (windows - split)) as f64;
        let is_step = between * (windows - 2) as f64 > STEP_SURE * (total - between);
        is_step && differs(&residuals[..split], &residuals[split..])
    })
}

/// Whether nearly all values of one part are above those of the other (Mann & Whitney 1947): a few
/// windows that are very bad are a burst, and no step.
fn differs(before: &[f64], after: &[f64]) -> bool {
    let above = |it: f64| -> f64 {
        let of = |other: &f64| match other.total_cmp(&it) {
            Ordering::Less => 1.0,
            Ordering::Equal => 0.5,
            Ordering::Greater => 0.0,
        };
        before.iter().map(of).sum()
    };
    let pairs = (before.len() * after.len()) as f64;
    let share = after.iter().map(|it| above(*it)).sum::<f64>() / pairs;
    share.max(1.0 - share) > STEP_ABOVE
}

/// The share at the rate of each window by the curve that never falls with the rate and fits best:
/// neighbours that fall are pooled.
fn increasing(counts: &[Count]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by(|a, b| counts[*a].rate.total_cmp(&counts[*b].rate));
    // Bad requests, requests, and windows of each pool.
    let mut pools: Vec<(f64, f64, Vec<usize>)> = Vec::new();
    for index in order {
        let count = counts[index];
        let mut own = (count.bad, count.requests, vec![index]);
        while let Some(last) = pools.last() {
            let is_same_rate = counts[last.2[0]].rate == count.rate;
            if !is_same_rate && last.0 / last.1 <= own.0 / own.1 {
                break;
            }
            let (bad, requests, mut members) = pools.pop().expect("it is the last");
            members.extend(own.2);
            own = (own.0 + bad, own.1 + requests, members);
        }
        pools.push(own);
    }
    let mut fitted = vec![0.0; counts.len()];
    for (bad, requests, members) in pools {
        members.iter().for_each(|it| fitted[*it] = bad / requests);
    }
    fitted
}

fn totals(counts: &[Count]) -> (f64, f64) {
    let add = |sum: (f64, f64), it: &Count| (sum.0 + it.bad, sum.1 + it.requests);
    counts.iter().fold((0.0, 0.0), add)
}

/// Student's t that is exceeded with a probability.
fn quantile(freedom: usize, tail: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom as f64)
        .expect("there are more windows than parameters")
        .inverse_cdf(1.0 - tail)
}

/// How many times greater the variance of a mean is than that of independent values, in the order
/// of time: twice the autocorrelations as long as sums of two neighbours are positive
/// (Geyer, Practical Markov chain Monte Carlo, 1992), 1 at least.
fn correlation(residuals: &[f64]) -> f64 {
    let at = |lag: usize| -> f64 {
        let pairs = residuals.iter().zip(&residuals[lag..]);
        pairs.map(|(a, b)| a * b).sum::<f64>() / residuals.len() as f64
    };
    let variance = at(0);
    if variance <= 0.0 {
        return 1.0;
    }
    let mut sum = 0.0;
    for lag in (1..residuals.len() / 4).step_by(2) {
        let pair = (at(lag) + at(lag + 1)) / variance;
        if pair <= 0.0 {
            break;
        }
        sum += pair;
    }
    1.0 + 2.0 * sum
}

impl Root {
    /// The rates below and above which the root lies with probability `tail` at most, each.
    /// Infinite, or 0, where the windows do not say.
    pub fn interval(&self, counts: &[Count], share: f64, tail: (f64, f64)) -> (f64, f64) {
        let quantile = |tail: f64| quantile(self.windows - 3, tail);
        let bound = |tail: f64| quantile(tail).powi(2) * self.dispersion;
        let accepts = |rate: f64, shape: Shape, bound: f64| {
            let lacks = Curve { share, shape }.least_deviance(counts, rate);
            lacks + shape.unusual() * self.dispersion - self.deviance <= bound
        };
        let rejected = |rate: f64, bound: f64| {
            let is_accepted = |it: &Shape| accepts(rate, *it, bound);
            !accepts(rate, self.shape, bound) && !SHAPES.iter().any(is_accepted)
        };
        let low = edge(self.rate, 0.0, |rate| rejected(rate, bound(tail.0)));
        let high = edge(self.rate, 10.0 * self.rate, |rate| {
            rejected(rate, bound(tail.1))
        });
        // The profile is too narrow where it is no parabola: where windows are bad as a whole.
        let low = low.min(self.rate - quantile(tail.0) * self.error).max(0.0);
        let high = high.max(self.rate + quantile(tail.1) * self.error);
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
    for _ in 0..16 {
        let middle = f64::midpoint(inside, outside);
        match rejected(middle) {
            true => outside = middle,
            false => inside = middle,
        }
    }
    f64::midpoint(inside, outside)
}

/// A share to the power 1 − [`POWER`], and to 2 − [`POWER`]. A fit takes thousands of them, and roots take
/// a tenth of the time of powers.
fn powers(share: f64) -> (f64, f64) {
    const { assert!(POWER == 1.25, "a quarter, and three quarters") };
    let root = share.sqrt().sqrt();
    (1.0 / root, root * root * root)
}

/// The share of bad requests, and whether it is below 1: from there on it does not grow.
fn modelled(log_share: f64) -> (f64, bool) {
    (log_share.clamp(-LOG_MAX, 0.0).exp(), log_share < 0.0)
}

/// The deviance of a window: twice the difference of its log-likelihood to that of a model with the
/// window's own share of bad requests.
fn deviance(count: &Count, log_share: f64) -> f64 {
    let (share, _) = modelled(log_share);
    let (own, fewer, more) = (count.share(), 1.0 - POWER, 2.0 - POWER);
    let (to_fewer, to_more) = powers(share);
    let of_own = powers(own).1 / (fewer * more);
    let of_model = own * to_fewer / fewer - to_more / more;
    2.0 * count.requests * (of_own - of_model)
}

/// How far a window is off, in its standard deviations at dispersion 1.
fn residual(count: &Count, log_share: f64) -> f64 {
    let (share, _) = modelled(log_share);
    (count.share() - share) * (count.requests * powers(share).0 / share).sqrt()
}

/// Derivative of the quasi-likelihood by the log of the share, and its expected second derivative.
fn score(count: &Count, log_share: f64) -> (f64, f64) {
    let (share, grows) = modelled(log_share);
    let weight = count.requests * powers(share).1;
    match grows {
        true => (weight * (count.share() / share - 1.0), weight),
        false => (0.0, 0.0),
    }
}

/// Level at `center` and slope of the log, by Newton's method.
fn line(counts: &[Count], center: f64) -> Option<(f64, f64)> {
    let (bad, all) = totals(counts);
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
            let (off, weight) = score(count, level + slope * x);
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
            score(it, share.ln() + slope * x).0 * x
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
    fn correlated_windows_say_less() {
        let alone = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0];
        assert!((correlation(&alone) - 1.0).abs() < 1e-9);
        let runs: Vec<f64> = (0..40).map(|it| f64::from(1 - it / 5 % 2 * 2)).collect();
        assert!(correlation(&runs) > 2.0, "{}", correlation(&runs));
        assert!((correlation(&[0.0; 8]) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn one_rate_is_kept_or_not() {
        let windows = |bad: f64| -> Vec<Count> {
            let of = |it: u32| Count {
                rate: 100.0,
                requests: 1000.0,
                bad: bad * f64::from(1 + it % 3) / 2.0,
            };
            (0..12).map(of).collect()
        };
        assert_eq!(is_kept(&windows(2.0), 0.01, 0.025), Some(true));
        assert_eq!(is_kept(&windows(10.0), 0.01, 0.025), None);
        assert_eq!(is_kept(&windows(50.0), 0.01, 0.025), Some(false));
        let mut all_bad = windows(1.0);
        all_bad.iter_mut().for_each(|it| it.bad = it.requests);
        assert_eq!(is_kept(&all_bad, 0.01, 0.025), Some(false));
        assert_eq!(is_kept(&windows(0.0), 0.01, 0.025), Some(true));
        // Fewer than four bad requests are to be expected: none is no evidence.
        assert_eq!(is_kept(&windows(0.0), 0.0001, 0.025), None);
        assert_eq!(is_kept(&windows(2.0)[..3], 0.01, 0.025), None);
    }

    #[test]
    fn a_step_in_time_is_found() {
        let mut counts: Vec<Count> = [RATES, RATES, RATES]
            .concat()
            .iter()
            .map(|rate| windows(&[*rate])[0])
            .collect();
        for (index, count) in counts.iter_mut().enumerate() {
            count.bad *= if index % 2 == 0 { 1.2 } else { 0.8 };
        }
        assert!(!changes(&counts, STEP_SURE));
        for count in &mut counts[12..] {
            count.bad *= 3.0;
        }
        assert!(changes(&counts, STEP_SURE));
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
