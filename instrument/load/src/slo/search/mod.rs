//! The search for the highest rate that meets objectives. Pure: it decides which rate to try next,
//! and evaluates the measurements; see `docs/decisions/0012-rate-under-objectives.md`.

use std::iter;

use super::fit::{self, Count, Root, root, straight_root};

/// Probability that the interval misses the rate, at most.
pub const MISS: f64 = 0.05;

/// The system whose rate is searched.
pub trait SystemUnderTest {
    type Error;

    /// Transactions a second of all sessions without pauses, 0 if none was answered; `None` if there
    /// is no time left.
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
    NeverKept {
        rate: f64,
        objective: usize,
    },
    /// Kept at all rates up to this one, which is more than the sessions can ask for.
    AlwaysKept {
        rate: f64,
    },
    /// A check of one rate: whether it keeps all objectives, or the one that it misses most.
    Kept {
        rate: f64,
    },
    Missed {
        rate: f64,
        objective: usize,
    },
    /// The windows do not decide it, with what they say.
    Undecided {
        low: f64,
        high: f64,
        why: Doubt,
    },
}

/// Why a search or a check has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// It ended before there were enough windows.
    TooFewWindows,
    /// The share of bad requests does not grow clearly with the rate.
    NoTrend,
    /// The interval is wider than a factor of [`WIDE`].
    TooWide,
    /// Hardly any window up to the rate had a bad request.
    FewBursts,
    /// At a rate that is checked, the share of bad requests is too near to the objective.
    TooNear,
    /// The server answered otherwise at the end than at the beginning.
    Changed,
    /// The client's own threads may have limited the rate.
    BusyClient,
    /// Sessions lost their connection.
    LostSessions,
    /// Nothing was answered at all.
    NeverAnswered,
    /// No request was answered within the window in which it was due.
    LongerThanWindows,
    /// Most answers were errors, and no objective counts them.
    MostlyErrors,
}

/// Upper over lower end of an interval above which it is no answer.
pub const WIDE: f64 = 2.0;
/// Fewer windows than these near the root do not give an interval.
const ENOUGH: usize = 10;

/// No answer, and no bound either.
const fn undecided(why: Doubt) -> Outcome {
    Outcome::Undecided {
        low: 0.0,
        high: f64::INFINITY,
        why,
    }
}

/// Highest rate, relative to what the sessions reach without pauses: a higher one cannot be sent.
const CEILING: f64 = 1.15;
/// Upper over lower end below which a bracket is narrow enough to fit the curve inside.
const NARROW: f64 = 1.25;
/// So many missed windows at the lowest rate decide that no rate is kept.
const SETTLES: usize = 3;
/// Windows farther from the root than so many times the distance at which they are placed are left
/// out of the fit.
const NEAR: f64 = 2.5;
const NEAR_MIN: usize = 10;
const ROUNDS: usize = 5;
/// Distance from the root at which windows are placed, in standard errors of the level of the curve
/// that so many windows find; at most so many logs of the share; and its limits relative to the rate.
/// Far enough for the slope to be known, as an interval without it has no ends.
const SHIFT_ERRORS: f64 = 14.0;
const SHIFT_WINDOWS: f64 = 30.0;
const SHIFT_LOGS: f64 = 2.2;
const SHIFT: (f64, f64) = (0.01, 0.4);
/// So many requests would be bad at the greatest rate in all windows, at least: a few bursts.
const EXPECTED_MIN: f64 = 150.0;
/// So many windows up to the root must have had bad requests.
const BURSTS_MIN: usize = 2;
/// So much a bracket is moved in which all windows are kept, or all are missed.
const MOVE: f64 = 1.2;
const MOVE_AFTER: usize = 4;
/// So many windows follow each other after less load, and as many after more.
const SETTLE_RUN: usize = 8;

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
        outcome: undecided(Doubt::TooFewWindows),
    };
    let mut capacity = 0.0;
    for _ in 0..ENOUGH {
        let Some(reached) = system.closed_loop()? else {
            return Ok(search);
        };
        capacity = reached;
        if reached > 0.0 {
            break;
        }
    }
    if capacity <= 0.0 {
        search.outcome = undecided(Doubt::LongerThanWindows);
        return Ok(search);
    }
    search.capacity = capacity;
    let strictest = shares.iter().copied().fold(1.0, f64::min);
    // At lower rates a window would have too few bad requests to judge.
    let lowest = (2.0 / strictest / window_seconds)
        .max(capacity / 100.0)
        .min(capacity / 2.0);
    let bracket = search.bracket(system, shares, lowest)?;
    if let Some(bracket) = bracket {
        let bracketing = search.windows.len();
        search.refine(system, shares, bracket)?;
        search.outcome = search.estimate(shares, bracketing);
    }
    Ok(search)
}

/// Loads one rate until there is no time left, and says whether it keeps the objectives.
pub fn check<S: SystemUnderTest>(
    system: &mut S,
    shares: &[f64],
    rate: f64,
) -> Result<Search, S::Error> {
    let mut search = Search {
        capacity: 0.0,
        windows: Vec::new(),
        outcome: undecided(Doubt::TooFewWindows),
    };
    while let Some(window) = system.window(rate)? {
        search.windows.push(window);
    }
    if search.windows.len() >= ENOUGH {
        search.outcome = search.checked(shares, rate, 0);
    }
    Ok(search)
}

/// How long the load runs before window `index`, relative to its length: about a quarter. It changes
/// from window to window (multiples of the golden ratio, which are spread evenly), and is less in one
/// run of windows and more in the next. So what the server does periodically moves through the
/// windows, also with a period of one or two of them, and does not stay in the parts before them.
pub fn settle(index: usize) -> f64 {
    let runs = if (index / SETTLE_RUN).is_multiple_of(2) {
        0.15
    } else {
        0.3
    };
    runs + 0.1 * (index as f64 * 0.618_033_988_749_894_9).fract()
}

impl Search {
    /// Takes the answer back, for a reason that is not in the windows.
    pub fn doubt(&mut self, why: Doubt) {
        let low = match (self.outcome, why) {
            // A server with a better client is no slower.
            (Outcome::Kept { .. }, Doubt::BusyClient) => return,
            (Outcome::Found { low, .. } | Outcome::Undecided { low, .. }, Doubt::BusyClient) => low,
            (Outcome::AlwaysKept { rate }, Doubt::BusyClient) => rate,
            _ => 0.0,
        };
        let high = f64::INFINITY;
        self.outcome = Outcome::Undecided { low, high, why };
    }

    /// The rate that was found, or the bound that is known.
    pub fn rate(&self) -> f64 {
        match self.outcome {
            Outcome::Found { rate, .. }
            | Outcome::NeverKept { rate, .. }
            | Outcome::AlwaysKept { rate }
            | Outcome::Kept { rate }
            | Outcome::Missed { rate, .. } => rate,
            Outcome::Undecided { low, .. } => low,
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
                    self.outcome = match self.confirmed(system, shares, kept)? {
                        Some(true) => Outcome::AlwaysKept { rate: kept },
                        _ => self.unconfirmed(shares),
                    };
                    return Ok(None);
                }
                (Some(kept), None) => (kept * 1.4).min(ceiling),
                (None, Some(missed)) if missed > lowest => (missed / 2.0).max(lowest),
                (None, _) => {
                    misses_at_lowest += 1;
                    if misses_at_lowest == SETTLES {
                        let objective = worst.unwrap_or(0);
                        self.outcome = match self.confirmed(system, shares, rate)? {
                            Some(false) => Outcome::NeverKept { rate, objective },
                            _ => self.unconfirmed(shares),
                        };
                        return Ok(None);
                    }
                    lowest
                }
            };
        }
        Ok(None)
    }

    /// Measures more windows at a rate: whether it keeps all objectives, misses one, or neither can be
    /// said. Windows that picked the rate do not count: they are bad, or good, by choice.
    fn confirmed<S: SystemUnderTest>(
        &mut self,
        system: &mut S,
        shares: &[f64],
        rate: f64,
    ) -> Result<Option<bool>, S::Error> {
        let from = self.windows.len();
        for _ in 0..ENOUGH {
            let Some(window) = system.window(rate)? else {
                break;
            };
            self.windows.push(window);
        }
        Ok(match self.checked(shares, rate, from) {
            Outcome::Kept { .. } => Some(true),
            Outcome::Missed { .. } => Some(false),
            _ => None,
        })
    }

    /// No answer, as the last windows do not confirm the rate that all of them had.
    fn unconfirmed(&self, shares: &[f64]) -> Outcome {
        let rate = self.windows.last().map(|it| it.rate);
        let latest = self.windows.iter().rev();
        let at_rate = latest.take_while(|it| Some(it.rate) == rate).count();
        match at_rate > ENOUGH {
            true => self.in_doubt(shares, Doubt::NoTrend),
            false => undecided(Doubt::TooFewWindows),
        }
    }

    /// Measures windows below the estimated limit, at it, and above.
    fn refine<S: SystemUnderTest>(
        &mut self,
        system: &mut S,
        shares: &[f64],
        mut bracket: (f64, f64),
    ) -> Result<(), S::Error> {
        // A server that was cold at first reaches more by now.
        let Some(reached) = system.closed_loop()? else {
            return Ok(());
        };
        self.capacity = self.capacity.max(reached);
        let ceiling = CEILING * self.capacity;
        for index in 0_u32.. {
            let place = place(index);
            let rate = match self.first_limit(shares) {
                Some((objective, root)) => {
                    root.rate * (1.0 + place * shift(&root, shares[objective]))
                }
                None if place > 0.0 => bracket.1,
                None if place < 0.0 => bracket.0,
                None => (bracket.0 * bracket.1).sqrt(),
            };
            let highest = (bracket.1 * 1.5).min(ceiling);
            let Some(window) = system.window(rate.max(bracket.0 / 2.0).min(highest))? else {
                return Ok(());
            };
            self.windows.push(window);
            if (index + 1).is_multiple_of(MOVE_AFTER as u32) {
                let last = &self.windows[self.windows.len() - MOVE_AFTER..];
                let kept = last.iter().filter(|it| it.missed(shares).is_none());
                let by = match kept.count() {
                    0 => 1.0 / MOVE,
                    MOVE_AFTER => MOVE,
                    _ => 1.0,
                };
                bracket = (bracket.0 * by, bracket.1 * by);
            }
        }
        Ok(())
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
        let all = self.counts(objective);
        let mut near = all.clone();
        for _ in 0..ROUNDS {
            let Some(found) = straight_root(&near, share) else {
                break;
            };
            let distance = |it: &Count| (it.rate - found.rate).abs();
            let mut distances: Vec<f64> = all.iter().map(distance).collect();
            distances.sort_by(f64::total_cmp);
            let least = distances[NEAR_MIN.min(distances.len()) - 1];
            let reach = (NEAR * shift(&found, share) * found.rate).max(least);
            let nearer: Vec<Count> = all
                .iter()
                .filter(|it| distance(it) <= reach)
                .copied()
                .collect();
            if nearer == near || straight_root(&nearer, share).is_none() {
                break;
            }
            near = nearer;
        }
        near
    }

    fn counts(&self, objective: usize) -> Vec<Count> {
        counts(&self.windows, objective)
    }

    fn estimate(&self, shares: &[f64], bracketing: usize) -> Outcome {
        // Higher rates cannot be sent, so the windows say nothing about them.
        let ceiling = CEILING * self.capacity;
        if self.windows.len() < bracketing + ENOUGH {
            return undecided(Doubt::TooFewWindows);
        }
        let Some((objective, first)) = self.first_limit(shares) else {
            return self.in_doubt(shares, Doubt::NoTrend);
        };
        if !self.has_bursts(first.rate, objective, shares[objective]) {
            return self.in_doubt(shares, Doubt::FewBursts);
        }
        // Windows that looked for a bracket are too far from the root for the line.
        let changes = |f_max: f64| {
            let steps = |it: usize| fit::changes(&self.counts(it)[bracketing..], f_max);
            (0..shares.len()).any(steps)
        };
        if changes(fit::STEP_SURE) {
            return undecided(Doubt::Changed);
        }
        // The limit is the least of several rates. Its lower bound is the least of theirs. That its
        // upper bound holds must be true for all of them together (Bonferroni).
        let tail = (MISS / 2.0, MISS / 2.0 / shares.len() as f64);
        let (mut low, mut high) = (f64::INFINITY, ceiling);
        for (objective, share) in shares.iter().enumerate() {
            let near = self.near(objective, *share);
            if let Some(root) = root(&near, *share) {
                let interval = root.interval(&near, *share, tail);
                (low, high) = (low.min(interval.0), high.min(interval.1));
            }
        }
        if high > WIDE * low && changes(fit::STEP_MAYBE) {
            // Bounds of windows before a change hold no longer.
            return self.in_doubt(shares, Doubt::TooWide);
        }
        if high > WIDE * low {
            let high = if high < ceiling { high } else { f64::INFINITY };
            let why = Doubt::TooWide;
            return Outcome::Undecided { low, high, why };
        }
        Outcome::Found {
            rate: first.rate,
            low,
            high,
            objective,
        }
    }

    /// Whether there were requests enough for some bursts at the greatest rate, and windows up to it had
    /// bad ones. Without, the rate is one at which the curve of overloaded windows would have come
    /// down: rare bursts at lower rates were not seen.
    fn has_bursts(&self, rate: f64, objective: usize, share: f64) -> bool {
        let requests: u64 = self.windows.iter().map(|it| it.requests).sum();
        let at_most = rate * (1.0 + SHIFT.0);
        let up_to = self.windows.iter().filter(|it| it.rate <= at_most);
        let with_bad = up_to.filter(|it| it.bad[objective] > 0).count();
        requests as f64 * share >= EXPECTED_MIN && with_bad >= BURSTS_MIN
    }

    /// What the windows at a rate say, from the one with this number on.
    fn checked(&self, shares: &[f64], rate: f64, from: usize) -> Outcome {
        let tail = MISS / 2.0 / shares.len() as f64;
        let objectives = 0..shares.len();
        let at_rate = |objective: usize| -> Vec<Count> {
            let later = counts(&self.windows[from..], objective).into_iter();
            later.filter(|it| it.rate == rate).collect()
        };
        let verdicts: Vec<Option<bool>> = objectives
            .clone()
            .map(|it| fit::is_kept(&at_rate(it), shares[it], tail))
            .collect();
        let share = |it: usize| at_rate(it).iter().map(|it| it.bad).sum::<f64>() / shares[it];
        let missed = objectives.clone().filter(|it| verdicts[*it] == Some(false));
        if let Some(objective) = missed.max_by(|a, b| share(*a).total_cmp(&share(*b))) {
            return Outcome::Missed { rate, objective };
        }
        if objectives.clone().all(|it| verdicts[it] == Some(true)) {
            return Outcome::Kept { rate };
        }
        let why = match objectives.into_iter().any(|it| fit::steps(&at_rate(it))) {
            true => Doubt::Changed,
            false => Doubt::TooNear,
        };
        undecided(why)
    }

    /// No answer for this reason, unless a change of the server explains it.
    fn in_doubt(&self, shares: &[f64], why: Doubt) -> Outcome {
        let changed = (0..shares.len()).any(|it| fit::steps(&self.counts(it)));
        undecided(if changed { Doubt::Changed } else { why })
    }
}

/// The windows with requests, in the order of time.
fn counts(windows: &[Window], objective: usize) -> Vec<Count> {
    let count = |it: &Window| Count {
        rate: it.rate,
        requests: it.requests as f64,
        bad: it.bad[objective] as f64,
    };
    let counts = windows.iter().map(count);
    counts.filter(|it| it.requests > 0.0).collect()
}

/// Where a window is placed: below the root, above or at it. The sum of the digits to the base of three,
/// as the Thue–Morse sequence is to the base of two: no period, and each place once in three.
fn place(index: u32) -> f64 {
    let digits = iter::successors(Some(index), |it| (*it > 0).then_some(it / 3));
    let sum: u32 = digits.map(|it| it % 3).sum();
    [-1.0, 1.0, 0.0][sum as usize % 3]
}

/// How far from the root windows are placed, relative to the rate.
fn shift(root: &Root, share: f64) -> f64 {
    let slope = (root.slope - root.slope_error).max(root.slope / 2.0);
    let known = SHIFT_ERRORS * root.window_error / SHIFT_WINDOWS.sqrt();
    let logs = SHIFT_LOGS.min(-share.ln() / 2.0).min(known);
    (logs / (slope * root.rate)).clamp(SHIFT.0, SHIFT.1)
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
