//! The search for the highest rate that meets objectives. Pure: it decides which rate to try next,
//! and evaluates the measurements; see `docs/decisions/0012-rate-under-objectives.md`.

use super::fit::{Count, Root, root};

/// Probability that the interval misses the rate, at most.
pub const MISS: f64 = 0.05;

/// The system whose rate is searched.
pub trait SystemUnderTest {
    type Error;

    /// Transactions a second of all sessions without pauses; `None` if there is no time left.
    fn closed_loop(&mut self) -> Result<Option<f64>, Self::Error>;

    /// Measures a window at a rate; `None` if there is no time left.
    fn window(&mut self, rate: f64) -> Result<Option<Window>, Self::Error>;
}

/// What was measured at a rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    pub rate: f64,
    pub requests: u64,
    /// Bad requests by objective.
    pub bad: Vec<u64>,
}

/// The course of a search, and its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// Transactions a second of all sessions without pauses.
    pub capacity: f64,
    pub windows: Vec<Window>,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// The greatest rate, its 95 % interval, and the objective that limits it.
    Found {
        rate: f64,
        low: f64,
        high: f64,
        objective: usize,
    },
    /// This objective is missed even at this rate.
    NeverKept { rate: f64, objective: usize },
    /// Kept at all rates up to this one, which is more than the sessions can ask for.
    AlwaysKept { rate: f64 },
    /// The windows do not decide it.
    Undecided,
}

/// Highest rate, relative to what the sessions reach without pauses: a higher one cannot be sent.
const CEILING: f64 = 1.15;
/// Upper over lower end below which a bracket is narrow enough to fit the curve inside.
const NARROW: f64 = 1.25;
/// So many missed windows at the lowest rate decide that no rate is kept.
const SETTLES: usize = 3;
/// Windows farther from the root, in logs of the share, are left out of the fit.
const NEAR: f64 = 5.0;
/// Distance from the root at which windows are placed, in logs of the share, and its limits
/// relative to the rate: so near, the curve is nearly straight.
const SHIFT_LOGS: f64 = 1.3;
const SHIFT: (f64, f64) = (0.01, 0.10);

/// Tries rates until there is no time left.
///
/// `shares` are those that may be bad, by objective; `window_seconds` is how long a window is.
pub fn search<S: SystemUnderTest>(
    system: &mut S,
    shares: &[f64],
    window_seconds: f64,
) -> Result<Search, S::Error> {
    let mut search = Search {
        capacity: 0.0,
        windows: Vec::new(),
        outcome: Outcome::Undecided,
    };
    let Some(capacity) = system.closed_loop()?.filter(|it| *it > 0.0) else {
        return Ok(search);
    };
    search.capacity = capacity;
    let strictest = shares.iter().copied().fold(1.0, f64::min);
    // At lower rates a window would have too few bad requests to judge.
    let lowest = (2.0 / strictest / window_seconds)
        .max(capacity / 100.0)
        .min(capacity / 2.0);
    let bracket = search.bracket(system, shares, lowest)?;
    if let Some(bracket) = bracket {
        search.refine(system, shares, bracket)?;
        search.outcome = search.estimate(shares);
    }
    Ok(search)
}

impl Search {
    /// The rate that was found, or the bound that is known.
    pub fn rate(&self) -> f64 {
        match self.outcome {
            Outcome::Found { rate, .. }
            | Outcome::NeverKept { rate, .. }
            | Outcome::AlwaysKept { rate } => rate,
            Outcome::Undecided => 0.0,
        }
    }

    /// A narrow pair of rates, one kept and one missed; `None` if there is none: the outcome says
    /// why.
    fn bracket<S: SystemUnderTest>(
        &mut self,
        system: &mut S,
        shares: &[f64],
        lowest: f64,
    ) -> Result<Option<(f64, f64)>, S::Error> {
        let ceiling = CEILING * self.capacity;
        let (mut kept, mut missed) = (None::<f64>, None::<f64>);
        let (mut rate, mut misses_at_lowest) = (self.capacity / 2.0, 0);
        while let Some(window) = system.window(rate)? {
            let worst = window.missed(shares);
            self.windows.push(window);
            match worst {
                None => kept = Some(rate),
                Some(_) => missed = Some(rate),
            }
            rate = match (kept, missed) {
                (Some(kept), Some(missed)) if missed / kept < NARROW => {
                    return Ok(Some((kept, missed)));
                }
                (Some(kept), Some(missed)) => (kept * missed).sqrt(),
                (Some(kept), None) if kept >= ceiling => {
                    self.outcome = Outcome::AlwaysKept { rate: kept };
                    return Ok(None);
                }
                (Some(kept), None) => (kept * 1.4).min(ceiling),
                (None, Some(missed)) if missed > lowest => (missed / 2.0).max(lowest),
                (None, _) => {
                    misses_at_lowest += 1;
                    if misses_at_lowest == SETTLES {
                        let objective = worst.unwrap_or(0);
                        self.outcome = Outcome::NeverKept { rate, objective };
                        return Ok(None);
                    }
                    lowest
                }
            };
        }
        Ok(None)
    }

    /// Measures windows on both sides of the estimated limit.
    fn refine<S: SystemUnderTest>(
        &mut self,
        system: &mut S,
        shares: &[f64],
        bracket: (f64, f64),
    ) -> Result<(), S::Error> {
        let ceiling = CEILING * self.capacity;
        let mut above = false;
        loop {
            let rate = match self.first_limit(shares) {
                Some((_, root)) => {
                    let shift = SHIFT_LOGS / (root.slope * root.rate);
                    let shift = shift.clamp(SHIFT.0, SHIFT.1);
                    root.rate * if above { 1.0 + shift } else { 1.0 - shift }
                }
                None if above => bracket.1,
                None => bracket.0,
            };
            let rate = rate.clamp(bracket.0 / 2.0, (bracket.1 * 1.5).min(ceiling));
            let Some(window) = system.window(rate)? else {
                return Ok(());
            };
            self.windows.push(window);
            above = !above;
        }
    }

    /// The objective that is missed at the lowest rate, and that rate.
    fn first_limit(&self, shares: &[f64]) -> Option<(usize, Root)> {
        let roots = (0..shares.len()).filter_map(|objective| {
            let root = root(&self.near(objective, shares[objective]), shares[objective])?;
            Some((objective, root))
        });
        roots.min_by(|a, b| a.1.rate.total_cmp(&b.1.rate))
    }

    /// The windows near the root of an objective.
    fn near(&self, objective: usize, share: f64) -> Vec<Count> {
        let count = |it: &Window| Count {
            rate: it.rate,
            requests: it.requests as f64,
            bad: it.bad[objective] as f64,
        };
        let all: Vec<Count> = self.windows.iter().map(count).collect();
        let Some(found) = root(&all, share) else {
            return all;
        };
        let is_near = |it: &&Count| (found.slope * (it.rate - found.rate)).abs() <= NEAR;
        let near: Vec<Count> = all.iter().filter(is_near).copied().collect();
        if near.len() * 2 < all.len() || root(&near, share).is_none() {
            return all;
        }
        near
    }

    fn estimate(&self, shares: &[f64]) -> Outcome {
        let Some((objective, first)) = self.first_limit(shares) else {
            return Outcome::Undecided;
        };
        // The limit is the least of several rates. Its lower bound is the least of theirs. That its
        // upper bound holds must be true for all of them together (Bonferroni).
        let tail = (MISS / 2.0, MISS / 2.0 / shares.len() as f64);
        let (mut low, mut high) = (f64::INFINITY, f64::INFINITY);
        for (objective, share) in shares.iter().enumerate() {
            let near = self.near(objective, *share);
            if let Some(root) = root(&near, *share) {
                let interval = root.interval(&near, *share, tail);
                (low, high) = (low.min(interval.0), high.min(interval.1));
            }
        }
        Outcome::Found {
            rate: first.rate,
            low,
            // Higher rates cannot be sent, so the windows say nothing about them.
            high: high.min(CEILING * self.capacity),
            objective,
        }
    }
}

impl Window {
    /// The objective that was missed by the largest factor, if one was.
    pub fn missed(&self, shares: &[f64]) -> Option<usize> {
        let excess = |objective: &usize| {
            self.bad[*objective] as f64 / (self.requests as f64 * shares[*objective])
        };
        let missed = (0..shares.len()).filter(|it| self.requests == 0 || excess(it) > 1.0);
        missed.max_by(|a, b| excess(a).total_cmp(&excess(b)))
    }
}

#[cfg(test)]
mod tests;
