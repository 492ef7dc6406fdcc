//! Searches on simulated servers whose true rate is known.

use std::thread;

use super::*;

mod servers;
mod simulated;
mod simulated_searches;

use servers::{CASES, CHANGING, Case, JUDGES};
use simulated::{Model, Service, Simulated, Speed, limits};

/// Number of windows in a search, and their length in mean service times.
const WINDOWS: usize = 40;
const LENGTH: f64 = 2500.0;

/// What many searches said.
#[derive(Debug, Default, Clone, Copy)]
struct Judged {
    searches: usize,
    /// With a rate and its interval.
    answered: usize,
    /// With a rate, or with bounds alone, that are wrong: too low, too high.
    too_low: usize,
    too_high: usize,
    /// Sums over those with a rate, as shares of the truth.
    width: f64,
    off: f64,
}

impl Judged {
    fn add(&mut self, other: Self) {
        self.searches += other.searches;
        self.answered += other.answered;
        self.too_low += other.too_low;
        self.too_high += other.too_high;
        self.width += other.width;
        self.off += other.off;
    }

    /// Share of the searches whose bounds hold the truth.
    fn held(&self) -> f64 {
        1.0 - (self.too_low + self.too_high) as f64 / self.searches as f64
    }

    fn line(&self, name: &str) -> String {
        let answered = self.answered.max(1) as f64;
        let percent = |part: usize| 100.0 * part as f64 / self.searches as f64;
        format!(
            "{name:<50} {:>6.1} {:>6.1} {:>8.1} {:>8.1} {:>9.1} {:>7.1} {:>7.1}",
            percent(self.searches - self.too_low - self.too_high),
            100.0 * (1.0 - (self.too_low + self.too_high) as f64 / answered),
            percent(self.too_low),
            percent(self.too_high),
            100.0 - percent(self.answered),
            100.0 * self.width / answered,
            100.0 * self.off / answered,
        )
    }
}

/// Bounds that a search gives, and the rate if it gives one.
fn bounds(outcome: Outcome) -> (f64, f64, Option<f64>) {
    match outcome {
        Outcome::Found {
            rate, low, high, ..
        } => (low, high, Some(rate)),
        Outcome::NeverKept { rate, .. } => (0.0, rate, None),
        Outcome::AlwaysKept { rate } => (rate, f64::INFINITY, None),
        Outcome::Undecided { low, high, .. } => (low, high, None),
        Outcome::Kept { .. } | Outcome::Missed { .. } => unreachable!("nothing is checked"),
    }
}

fn searched(model: Model, seed: u64, objectives: &[(f64, f64)]) -> Search {
    let (shares, limits): (Vec<f64>, Vec<f64>) = objectives.iter().copied().unzip();
    let mut server = Simulated::new(model, seed, &limits, WINDOWS, LENGTH);
    search(&mut server, &shares, LENGTH).unwrap()
}

fn judge(model: Model, objectives: &[(f64, f64)], truth: f64, seeds: &[u64]) -> Judged {
    let mut sum = Judged::default();
    for seed in seeds {
        let (low, high, rate) = bounds(searched(model, *seed, objectives).outcome);
        sum.add(Judged {
            searches: 1,
            answered: usize::from(rate.is_some()),
            too_low: usize::from(high < truth),
            too_high: usize::from(low > truth),
            width: rate.map_or(0.0, |_| (high - low) / truth),
            off: rate.map_or(0.0, |it| it / truth - 1.0),
        });
    }
    sum
}

/// The searches of a case with seeds from a first one on, divided between two threads.
fn judge_case(case: &Case, searches: u64, first_seed: u64) -> Judged {
    let seeds: Vec<u64> = (first_seed..first_seed + searches).collect();
    let mut sum = Judged::default();
    thread::scope(|scope| {
        let parts = seeds.chunks(seeds.len().div_ceil(2));
        let judging: Vec<_> = parts
            .map(|part| scope.spawn(|| judge(case.model, case.objectives, case.rate, part)))
            .collect();
        for part in judging {
            sum.add(part.join().unwrap());
        }
    });
    sum
}

/// A number from the environment.
fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |it| it.parse().expect("a number"))
}

/// Prints how often the interval holds the truth, by server: `benches/rates.py` shows it, with seeds
/// that are new each time.
#[test]
#[ignore = "minutes; make bench"]
fn coverage_by_server() {
    let searches = setting("CONCURVE_SEARCHES", 200);
    let first_seed = setting("CONCURVE_SEED", 1000);
    let only = std::env::var("CONCURVE_SERVERS").unwrap_or_default();
    let is_asked = |name: &str| only.split(';').any(|it| name.contains(it));
    println!(
        "{:<50} {:>6} {:>6} {:>8} {:>8} {:>9} {:>7} {:>7}",
        "percent", "holds", "of ans", "too low", "too high", "no rate", "width", "off"
    );
    for (star, cases) in [("", CASES), ("* ", JUDGES)] {
        for case in cases.iter().filter(|it| is_asked(it.name)) {
            let name = format!("{star}{}", case.name);
            println!("{}", judge_case(case, searches, first_seed).line(&name));
        }
    }
    for (name, model, truth) in changing().filter(|it| is_asked(it.0)) {
        let objectives = [(0.01, 23.026)];
        let seeds: Vec<u64> = (first_seed..first_seed + searches).collect();
        println!("{}", judge(model, &objectives, truth, &seeds).line(name));
    }
}

/// M/M/1 with p99 at load 0.8 before the change. At speed s the same limit is exceeded by as many
/// at the rate s − 0.2.
fn changing() -> impl Iterator<Item = (&'static str, Model, f64)> {
    let time = LENGTH + WINDOWS as f64 * LENGTH * 1.25;
    CHANGING.iter().map(move |(name, share, speed)| {
        let falls = Speed::Falls {
            at: share * time,
            speed: *speed,
        };
        let model = Model {
            speed: falls,
            ..CASES[0].model
        };
        (*name, model, speed - 0.2)
    })
}

#[test]
#[ignore = "half a minute; make bench"]
fn the_limits_are_those_of_the_rates() {
    for case in CASES.iter().chain(JUDGES) {
        let shares: Vec<f64> = case.objectives.iter().map(|it| it.0).collect();
        let limits = limits(case.model, case.rate, &shares, 3e7, 7);
        for ((_, frozen), found) in case.objectives.iter().zip(limits) {
            let name = case.name;
            assert!((found / frozen - 1.0).abs() < 1e-4, "{name}: {found}");
        }
    }
}

/// The share of requests that take longer than t: exp(−(1 − rate) t) in M/M/1.
#[test]
fn the_simulation_agrees_with_theory() {
    let model = CASES[0].model;
    for (rate, share) in [(0.5, 0.5), (0.5, 0.01), (0.8, 0.1)] {
        let found = limits(model, rate, &[share], 1e6, 7)[0];
        let truth = -f64::ln(share) / (1.0 - rate);
        assert!((found / truth - 1.0).abs() < 0.03, "{found} {truth}");
    }
    // Half of the speed is half of the rate, and twice the time.
    let slow = Model {
        speed: Speed::Falls {
            at: 0.0,
            speed: 0.5,
        },
        ..model
    };
    let found = limits(slow, 0.25, &[0.1], 1e6, 7)[0];
    let truth = -f64::ln(0.1) / (0.5 - 0.25);
    assert!((found / truth - 1.0).abs() < 0.03, "{found} {truth}");
    // M/D/1 waits half as long as M/M/1 on average: rate / 2 (1 − rate).
    let constant = Model {
        service: Service::Constant,
        ..model
    };
    let mut server = Simulated::new(constant, 3, &[], 0, 0.0);
    let (mut sum, mut count) = (0.0, 0.0);
    server.load(0.8, 1e6, |_, _, taken| {
        sum += taken - 1.0;
        count += 1.0;
    });
    let mean = sum / count;
    assert!((mean / 2.0 - 1.0).abs() < 0.05, "{mean}");
}

/// The share of bad requests in a window, by its number and its rate.
type Plan<'a> = &'a dyn Fn(usize, f64) -> f64;

/// A server whose windows have shares of bad requests that are planned. Its sessions reach 1000 per
/// second without pauses.
struct Planned<'a> {
    plan: Plan<'a>,
    done: usize,
    windows: usize,
}

impl SystemUnderTest for Planned<'_> {
    type Error = std::convert::Infallible;

    fn closed_loop(&mut self) -> Result<Option<f64>, Self::Error> {
        Ok(Some(1000.0))
    }

    fn window(&mut self, rate: f64) -> Result<Option<Window>, Self::Error> {
        let number = self.done;
        self.done += 1;
        Ok((number < self.windows).then(|| Window {
            rate,
            requests: 100,
            bad: vec![(100.0 * (self.plan)(number, rate)).round() as u64],
        }))
    }
}

fn planned(plan: Plan) -> Planned {
    Planned {
        plan,
        done: 0,
        windows: WINDOWS,
    }
}

fn checked(shares: &[f64], limit: f64) -> Outcome {
    let plan = |number: usize, _: f64| shares[number];
    let mut server = Planned {
        windows: shares.len(),
        ..planned(&plan)
    };
    check(&mut server, &[limit], 50.0).unwrap().outcome
}

#[test]
fn a_change_in_time_is_told_from_shares_that_do_not_grow_with_the_rate() {
    let outcome = |plan: Plan| search(&mut planned(plan), &[0.1], 1.0).unwrap().outcome;
    let grows = |rate: f64| ((rate - 700.0) / 200.0).clamp(0.0, 1.0);
    // It hangs, or is ten times as slow, from then on; or becomes as fast as it should be.
    for at in [12, 20, 28] {
        let hangs = |number: usize, rate: f64| if number < at { grows(rate) } else { 1.0 };
        assert_eq!(outcome(&hangs), undecided(Doubt::Changed), "{at}");
        let slows = |number: usize, rate: f64| if number < at { grows(rate) } else { 0.9 };
        assert_eq!(outcome(&slows), undecided(Doubt::Changed), "{at}");
    }
    let recovers = |number: usize, rate: f64| if number < 12 { 1.0 } else { grows(rate) };
    assert_eq!(outcome(&recovers), undecided(Doubt::Changed));
    // The same all the time, whatever the rate is.
    let of_another_reason = |number: usize, _: f64| [0.02, 0.3, 0.25, 0.0][number % 4];
    let found = outcome(&of_another_reason);
    let Outcome::Undecided { why, .. } = found else {
        panic!("{found:?}");
    };
    assert!([Doubt::NoTrend, Doubt::TooWide].contains(&why), "{found:?}");
    // A check of one rate: the same shares in two orders.
    let mixed: Vec<f64> = [0.05, 0.15].repeat(20);
    assert_eq!(checked(&mixed, 0.1), undecided(Doubt::TooNear));
    let mut sorted = mixed;
    sorted.sort_by(f64::total_cmp);
    assert_eq!(checked(&sorted, 0.1), undecided(Doubt::Changed));
}

#[test]
fn a_check_decides_far_from_the_objective_alone() {
    let rate = 50.0;
    let objective = 0;
    assert_eq!(checked(&[0.0; 40], 0.5), Outcome::Kept { rate });
    let missed = Outcome::Missed { rate, objective };
    assert_eq!(checked(&[1.0; 40], 0.5), missed);
    let near = undecided(Doubt::TooNear);
    assert_eq!(checked(&[0.5; 40], 0.5), near);
    let mixed: Vec<f64> = [0.4, 0.6, 0.55, 0.45].repeat(10);
    assert_eq!(checked(&mixed, 0.5), near);
    assert_eq!(checked(&mixed, 0.7), Outcome::Kept { rate });
    assert_eq!(checked(&mixed, 0.3), missed);
    // A machine that stopped for a while made the requests of some windows bad: that is a burst, from
    // which nothing follows, and no change of the server.
    for at in [3, 20, 33] {
        let mut stopped = [0.0; 40];
        stopped[at..at + 4].fill(1.0);
        assert_eq!(checked(&stopped, 0.5), near, "{at}");
    }
    let few = undecided(Doubt::TooFewWindows);
    assert_eq!(checked(&[0.0; 9], 0.5), few);
}

#[test]
fn the_objective_that_is_reached_first_limits() {
    // p99 at load 0.9 and at load 0.5.
    let objectives = [(0.01, 46.05), (0.01, 9.21)];
    let found = searched(CASES[0].model, 1, &objectives);
    let Outcome::Found {
        rate, objective, ..
    } = found.outcome
    else {
        panic!("{:?}", found.outcome);
    };
    assert_eq!(objective, 1);
    assert!((rate - 0.5).abs() < 0.05, "{rate}");
    assert_eq!(found.windows.len(), WINDOWS);
}

#[test]
fn objectives_that_are_never_or_always_kept_are_reported() {
    let failing = Model {
        failing: 0.1,
        ..CASES[0].model
    };
    let found = searched(failing, 1, &[(0.01, 1e9)]);
    let Outcome::NeverKept { rate, objective: 0 } = found.outcome else {
        panic!("{:?}", found.outcome);
    };
    // Two bad requests are to be expected in a window at least.
    assert!((rate - 2.0 / 0.01 / LENGTH).abs() < 1e-9, "{rate}");

    let found = searched(CASES[0].model, 1, &[(0.01, 1e9)]);
    let ceiling = CEILING * found.capacity;
    assert_eq!(found.outcome, Outcome::AlwaysKept { rate: ceiling });
}

/// Four windows pick the rate that all sessions can send; six others must confirm it.
#[test]
fn the_windows_that_picked_a_rate_do_not_confirm_it() {
    let keeps = |_: usize, _: f64| 0.0;
    let outcome = |windows: usize| {
        let mut server = Planned {
            windows,
            ..planned(&keeps)
        };
        search(&mut server, &[0.1], 1.0).unwrap().outcome
    };
    assert_eq!(outcome(9), undecided(Doubt::TooFewWindows));
    let Outcome::AlwaysKept { rate } = outcome(10) else {
        panic!("{:?}", outcome(10));
    };
    assert!((rate - 1000.0 * CEILING).abs() < 1e-6, "{rate}");
}

#[test]
fn a_search_without_time_decides_nothing() {
    for windows in [0, 3] {
        let mut server = Simulated::new(CASES[0].model, 1, &[23.026], windows, LENGTH);
        let found = search(&mut server, &[0.01], LENGTH).unwrap();
        assert_eq!(found.outcome, undecided(Doubt::TooFewWindows));
        assert_eq!(found.windows.len(), windows);
    }
}
