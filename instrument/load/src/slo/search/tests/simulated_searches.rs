//! Hundreds of searches and checks on simulated servers: how often they are right.

use super::*;

/// The greatest mean widths of the intervals of the first cases.
const WIDTHS_MAX: [f64; 5] = [0.15, 0.40, 0.05, 0.15, 0.15];
const SEED: u64 = 1000;

/// The searches are seeded: these figures are the same each time. 0.90 is 1.6 standard
/// deviations below 0.95 for fifty searches; `make bench` judges 200 of each server.
#[test]
fn the_interval_of_each_server_contains_its_true_rate() {
    for (case, width_max) in CASES.iter().zip(WIDTHS_MAX) {
        let judged = judge_case(case, 50, SEED);
        let line = judged.line(case.name);
        let answered = judged.answered as f64;
        assert!(judged.held() >= 0.90 && answered >= 45.0, "{line}");
        assert!(judged.width / answered < width_max, "{line}");
        assert!((judged.off / answered).abs() < 0.02, "{line}");
    }
    let mut all = Judged::default();
    for case in CASES.iter().skip(5).step_by(3).chain(&JUDGES[5..6]) {
        let judged = judge_case(case, 40, SEED);
        let line = judged.line(case.name);
        assert!(judged.too_low + judged.too_high <= 5, "{line}");
        all.add(judged);
    }
    assert!(all.held() >= 0.93, "{all:?}");
}

/// At the greatest rate itself a check may be wrong as often as its level says, on each side.
#[test]
fn a_check_is_seldom_wrong() {
    for case in [0, 5, 8, 12, 21].map(|it| &CASES[it]) {
        let (shares, limits): (Vec<f64>, Vec<f64>) = case.objectives.iter().copied().unzip();
        let verdicts = |rate: f64| -> (u64, u64) {
            let outcomes = (0..60).map(|seed| {
                let mut server = Simulated::new(case.model, seed, &limits, WINDOWS, LENGTH);
                check(&mut server, &shares, rate).unwrap().outcome
            });
            outcomes.fold((0, 0), |(kept, missed), outcome| match outcome {
                Outcome::Kept { .. } => (kept + 1, missed),
                Outcome::Missed { .. } => (kept, missed + 1),
                _ => (kept, missed),
            })
        };
        let (kept, missed) = verdicts(case.rate);
        assert!(kept <= 6 && missed <= 6, "{}: {kept} {missed}", case.name);
        let (kept, missed) = verdicts(case.rate * 0.5);
        assert!(kept >= 40 && missed == 0, "{}: {kept} {missed}", case.name);
        let (kept, missed) = verdicts(case.rate * 1.5);
        assert!(kept == 0 && missed >= 50, "{}: {kept} {missed}", case.name);
    }
}

/// With windows of a tenth of the usual length, which leave much undecided.
#[test]
fn a_server_that_stays_the_same_is_seldom_said_to_change() {
    let changed = |case: &Case| {
        let (shares, limits): (Vec<f64>, Vec<f64>) = case.objectives.iter().copied().unzip();
        let outcomes = (0..15).map(|seed| {
            let mut server = Simulated::new(case.model, seed, &limits, WINDOWS, LENGTH / 10.0);
            search(&mut server, &shares, LENGTH / 10.0).unwrap().outcome
        });
        let is_change = |it: &Outcome| *it == undecided(Doubt::Changed);
        outcomes.filter(is_change).count()
    };
    for case in [0, 1, 2, 4].map(|it| &CASES[it]) {
        let found = changed(case);
        assert!(found <= 2, "{}: {found} of 15", case.name);
    }
}

#[test]
fn a_server_that_changes_gets_no_rate_of_the_past() {
    for (name, model, truth) in changing() {
        let seeds: Vec<u64> = (0..20).collect();
        let judged = judge(model, &[(0.01, 23.026)], truth, &seeds);
        assert!(
            judged.too_low + judged.too_high <= 2,
            "{}",
            judged.line(name)
        );
        assert!(judged.answered <= 6, "{}", judged.line(name));
    }
}
