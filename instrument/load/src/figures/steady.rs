//! Whether the load was in a steady state: judged by the answers of each slot of the measured time.
//!
//! The rate of answers and their median latency are searched for a change of level: at each slot the
//! values before and after are compared by the rank-sum test of Mann and Whitney, and the greatest of
//! the standardised statistics tells where a change is, if there is one (Pettitt 1979; Hawkins and Deng
//! 2010). Changes in the first half of the time may be the ends of a warm-up: what comes before is left
//! out, and the rest is searched again. A part at an end that hardly moves the mean is left out as well, and is
//! no change. A server that answers nothing at the end is never steady.
//!
//! In an open loop the rate is judged as far as the rate that was due: above it, the server answers what waited
//! before, and that was due at another time. So a backlog of the beginning that drains is no change of the
//! rate; the latency says how long it lasted.
//!
//! Nothing is cut from the figures: the readings of the server were taken over the whole measured time.

use serde_json::{Value, json};

use crate::counts::timeline::{Timeline, bucket_ns};
use crate::units::{percent, time};

/// Fewer slots with answers are not judged.
const SLOTS_MIN: usize = 12;
/// Mean number of answers in a slot, at least: with fewer, slots are put together.
const ANSWERS_MIN: f64 = 10.0;
/// A standardised statistic above this is a change: the greatest of a hundred independent values
/// is below it in all but one of some thousand cases.
const CHANGE_Z: f64 = 4.5;
/// So is a part at an end that all others are above, or all below, if a part of its length could be chosen
/// in more ways than this.
const CHOICES_MIN: f64 = 2e4;
/// Rates and latencies that differ less are no change: latencies vary more on any machine.
const RATE_CHANGE_MIN: f64 = 0.2;
const LATENCY_CHANGE_MIN: f64 = 0.5;
/// A part at an end that moves the mean of the rest by less than this matters to no figure: two settings that are so
/// near are called the same.
const MEAN_CHANGE_MIN: f64 = 0.02;
/// A rate that falls below this share of what it was is no end of a warm-up.
const COLLAPSE: f64 = 0.5;
/// So many answers should have come in a time without any, at least, for that to mean something.
const MISSING_MIN: f64 = 10.0;
/// And it is at least this share of the measured time.
const SILENCE_MIN: f64 = 0.01;

/// What is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    Rate,
    /// Open loop: as far as the rate that was due.
    RateOfDue,
    Latency,
}

/// A level that changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    pub quantity: Quantity,
    /// Since measuring began.
    pub at_ns: u64,
    /// The level after it over that before it, less one.
    pub by: f64,
}

/// The judgement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Steadiness {
    /// There was too little to judge.
    Unknown,
    Steady,
    /// From the change on.
    SteadyFrom(Change),
    Unsteady(Change),
    /// Nothing was answered from then on, to the end.
    Silent {
        since_ns: u64,
    },
}

/// When the last answer came, and what was still to come.
#[derive(Debug, Clone, Copy)]
pub struct Ending {
    /// Of the measured time.
    pub end_ns: u64,
    /// Until then all workers ran: one that ends before the others, also at a stop, changes the rate.
    pub all_ran_ns: u64,
    pub last_answer_ns: u64,
    pub longest_ns: u64,
    pub has_unanswered: bool,
}

/// Judges a measured time; in an open loop so many transactions were due per second.
pub fn judge(timeline: &Timeline, ending: Ending, due_per_second: Option<f64>) -> Steadiness {
    if is_silent(timeline, ending) {
        return Steadiness::Silent {
            since_ns: ending.last_answer_ns,
        };
    }
    let Some(mut series) = Series::of(timeline, ending.all_ran_ns) else {
        return Steadiness::Unknown;
    };
    let mut rate = Quantity::Rate;
    if let Some(due) = due_per_second {
        rate = Quantity::RateOfDue;
        let due = due * series.width_ns as f64 / 1e9;
        series.rates.iter_mut().for_each(|it| *it = it.min(due));
    }
    let judged = [
        (rate, &series.rates),
        (Quantity::Latency, &series.latencies),
    ]
    .map(|(quantity, values)| judge_series(quantity, values, series.width_ns));
    let rank = |it: &Steadiness| match it {
        Steadiness::Unsteady(change) => (2, change.at_ns),
        Steadiness::SteadyFrom(change) => (1, change.at_ns),
        _ => (0, 0),
    };
    // Of two the rate comes first, because the latency follows from it.
    let [rate, latency] = judged;
    match rank(&latency) > rank(&rate) {
        true => latency,
        false => rate,
    }
}

fn is_silent(timeline: &Timeline, ending: Ending) -> bool {
    let silence_ns = ending.end_ns.saturating_sub(ending.last_answer_ns);
    let answers: u32 = timeline.answered().iter().sum();
    let rate = f64::from(answers) / ending.last_answer_ns.max(1) as f64;
    ending.has_unanswered
        && answers > 0
        && silence_ns > ending.longest_ns
        && silence_ns as f64 > SILENCE_MIN * ending.end_ns as f64
        && rate * silence_ns as f64 > MISSING_MIN
}

struct Series {
    width_ns: u64,
    rates: Vec<f64>,
    latencies: Vec<f64>,
}

impl Series {
    /// Slots that have enough answers each on the average; `None` if these are too few.
    fn of(timeline: &Timeline, end_ns: u64) -> Option<Self> {
        // The last slot of a run that is stopped, or ends by a number, is not complete.
        let complete = (end_ns / timeline.width_ns()) as usize;
        let used = timeline.used().min(complete);
        let answers: f64 = timeline.answered()[..used]
            .iter()
            .map(|it| f64::from(*it))
            .sum();
        let size = (ANSWERS_MIN * used as f64 / answers.max(1.0))
            .ceil()
            .max(1.0) as usize;
        if used / size < SLOTS_MIN {
            return None;
        }
        let mut series = Self {
            width_ns: timeline.width_ns() * size as u64,
            rates: Vec::new(),
            latencies: Vec::new(),
        };
        for first in (0..used + 1 - size).step_by(size) {
            let slots = first..first + size;
            let answered = &timeline.answered()[slots.clone()];
            series
                .rates
                .push(answered.iter().map(|it| f64::from(*it)).sum());
            let last = series.latencies.last().copied();
            series.latencies.extend(median(timeline, slots).or(last));
        }
        Some(series)
    }
}

/// The median latency of slots; `None` if they are empty.
fn median(timeline: &Timeline, slots: std::ops::Range<usize>) -> Option<f64> {
    let buckets = timeline.buckets(slots.start).len();
    let count = |bucket: usize| -> u64 {
        let of = |slot: usize| u64::from(timeline.buckets(slot)[bucket]);
        slots.clone().map(of).sum()
    };
    let total: u64 = (0..buckets).map(count).sum();
    let mut below = 0;
    let found = (0..buckets).find(|bucket| {
        below += count(*bucket);
        below > 0 && 2 * below >= total
    });
    found.map(bucket_ns)
}

fn judge_series(quantity: Quantity, values: &[f64], width_ns: u64) -> Steadiness {
    let mut found = Steadiness::Steady;
    let (mut cut, mut end) = (0, values.len());
    while let Some(at) = change_point(&values[cut..end]) {
        let rest = &values[cut..end];
        if !moves_mean(rest, at) {
            match at > rest.len() / 2 {
                true => end = cut + at,
                false => cut += at,
            }
            continue;
        }
        let (before, after) = (middle(&rest[..at]), middle(&rest[at..]));
        cut += at;
        let change = Change {
            quantity,
            at_ns: cut as u64 * width_ns,
            by: after / before.max(f64::MIN_POSITIVE) - 1.0,
        };
        let least = match quantity {
            Quantity::Rate | Quantity::RateOfDue => RATE_CHANGE_MIN,
            Quantity::Latency => LATENCY_CHANGE_MIN,
        };
        // By how much the greater of the two levels is above the other.
        let ratio = 1.0 + change.by;
        if ratio.max(1.0 / ratio) < 1.0 + least {
            break;
        }
        let collapsed = quantity != Quantity::Latency && change.by < COLLAPSE - 1.0;
        if collapsed || cut > values.len() / 2 {
            return Steadiness::Unsteady(change);
        }
        found = Steadiness::SteadyFrom(change);
    }
    found
}

/// Whether the mean of all values is another one than that of the longer part, before or after a place.
fn moves_mean(values: &[f64], at: usize) -> bool {
    let longer = match at > values.len() / 2 {
        true => &values[..at],
        false => &values[at..],
    };
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len().max(1) as f64;
    let (of_longer, of_all) = (mean(longer), mean(values));
    (of_all - of_longer).abs() >= MEAN_CHANGE_MIN * of_longer
}

/// Where the level changes most, if it is not the same before and after.
fn change_point(values: &[f64]) -> Option<usize> {
    let number = values.len();
    let sign = |one: f64, other: f64| match one.total_cmp(&other) {
        std::cmp::Ordering::Less => -1i64,
        std::cmp::Ordering::Equal => 0,
        std::cmp::Ordering::Greater => 1,
    };
    // Twice the deviation of the rank-sum statistic from its mean.
    let mut twice = 0;
    let mut changes = Vec::with_capacity(number);
    for (index, value) in values.iter().enumerate().take(number.saturating_sub(1)) {
        twice += values.iter().map(|other| sign(*value, *other)).sum::<i64>();
        let (before, after) = (index + 1, number - index - 1);
        let pairs = (before * after) as f64;
        let deviation = twice.unsigned_abs() as f64 / 2.0;
        let z = deviation / (pairs * (number as f64 + 1.0) / 12.0).sqrt();
        let is_apart = twice.unsigned_abs() as usize == before * after;
        let is_change = z > CHANGE_Z || is_apart && choices(number, before) > CHOICES_MIN;
        changes.push((z, before, is_change));
    }
    let changes = changes.into_iter().filter(|it| it.2);
    changes
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|it| it.1)
}

/// In how many ways so many of a number of values can be chosen.
fn choices(number: usize, chosen: usize) -> f64 {
    let chosen = chosen.min(number - chosen);
    let factor = |it: usize| (number - it) as f64 / (it + 1) as f64;
    (0..chosen).map(factor).product()
}

/// The median.
fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        _ if sorted.is_empty() => 0.0,
        0 => f64::midpoint(sorted[half - 1], sorted[half]),
        _ => sorted[half],
    }
}

/// A greater growth than this share is told by how many times.
const TIMES_MIN: f64 = 9.0;

impl Change {
    /// As in "the rate fell by 40 % after 2.10 s".
    fn text(&self) -> String {
        let (name, at) = (self.name(), time(self.at_ns as f64));
        if self.quantity == Quantity::RateOfDue && self.by > 0.0 {
            return format!(
                "the server fell behind the rate that was due before {at}, and answered what waited after it"
            );
        }
        if self.by.is_infinite() {
            return format!("the {name} rose from 0 after {at}");
        }
        if self.by >= TIMES_MIN {
            let times = self.by + 1.0;
            return format!("the {name} rose to {times:.0} times as much after {at}");
        }
        let verb = if self.by < 0.0 { "fell" } else { "rose" };
        let by = percent(self.by.abs());
        format!("the {name} {verb} by {by} after {at}")
    }

    fn name(&self) -> &'static str {
        match self.quantity {
            Quantity::Rate | Quantity::RateOfDue => "rate",
            Quantity::Latency => "median latency",
        }
    }
}

impl Steadiness {
    /// The judgement in a few words; `None` if there is none.
    pub fn text(&self) -> Option<String> {
        Some(match self {
            Self::Unknown => return None,
            Self::Steady => "over the whole measured time".to_owned(),
            Self::SteadyFrom(change) => {
                let from = time(change.at_ns as f64);
                format!("from {from} on: {}", change.text())
            }
            Self::Unsteady(change) => format!("no steady state: {}", change.text()),
            Self::Silent { since_ns } => {
                let since = time(*since_ns as f64);
                format!("no steady state: nothing was answered after {since}")
            }
        })
    }

    /// The judgement on a line beside the warning, which says it whole; `None` if there is none.
    pub fn line(&self) -> Option<String> {
        match self {
            Self::Unknown | Self::Steady => self.text(),
            Self::SteadyFrom(change) => {
                let from = time(change.at_ns as f64);
                Some(format!("from {from} on: see the warning"))
            }
            Self::Unsteady(_) | Self::Silent { .. } => Some("no: see the warning".to_owned()),
        }
    }

    /// What to do about it; on a busy machine other programs may have brought it about.
    pub fn warning(&self, end_ns: u64, machine_busy: bool) -> Option<String> {
        let look = match machine_busy {
            true => {
                "the other programs on this machine may be the cause: try again when it is idle"
            }
            false => "look at the server at that time, or try a longer --duration or --warm-up",
        };
        match self {
            Self::Unknown | Self::Steady => None,
            Self::SteadyFrom(change) => {
                let ms = change.at_ns.div_ceil(1_000_000);
                Some(format!(
                    "steady only {}: the figures are those of the whole measured time; --warm-up {ms}ms leaves the beginning out",
                    self.text()?
                ))
            }
            Self::Unsteady(_) => Some(format!(
                "{}: the figures are a mixture; {look}",
                self.text()?
            )),
            Self::Silent { since_ns } => Some(format!(
                "the server answered nothing in the last {} of {}: its figures are those of before; look at the server",
                time(end_ns.saturating_sub(*since_ns) as f64),
                time(end_ns as f64)
            )),
        }
    }

    pub fn json(&self) -> Value {
        let of = |is_steady: bool, change: &Change| {
            json!({
                "is_steady": is_steady,
                "quantity": change.name(),
                "at_seconds": change.at_ns as f64 / 1e9,
                "changes_by": change.by,
                "text": self.text(),
            })
        };
        match self {
            Self::Unknown => Value::Null,
            Self::Steady => json!({"is_steady": true, "text": self.text()}),
            Self::SteadyFrom(change) => of(true, change),
            Self::Unsteady(change) => of(false, change),
            Self::Silent { since_ns } => json!({
                "is_steady": false,
                "silent_since_seconds": *since_ns as f64 / 1e9,
                "text": self.text(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};
    use rand_distr::{Distribution, StandardNormal};

    use super::*;

    const END_NS: u64 = 4_000_000_000;

    /// A closed loop of 4 s whose mean time between answers and latency, in µs, depend on the time.
    fn load(seed: u64, pace: impl Fn(f64) -> (f64, f64)) -> (Timeline, Ending) {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut timeline = Timeline::new(Some(END_NS));
        let (mut now, mut last_ns, mut longest_ns) = (0.0, 0, 0);
        loop {
            let (gap_us, latency_us) = pace(now / 1e9);
            now += 1e3 * gap_us * random.sample::<f64, _>(rand_distr::Exp1);
            if now >= END_NS as f64 {
                break;
            }
            let noise: f64 = StandardNormal.sample(&mut random);
            let latency_ns = (1e3 * latency_us * (0.3 * noise).exp()) as u64;
            timeline.record(now as u64, latency_ns);
            last_ns = now as u64;
            longest_ns = longest_ns.max(latency_ns);
        }
        let ending = Ending {
            end_ns: END_NS,
            all_ran_ns: END_NS,
            last_answer_ns: last_ns,
            longest_ns,
            has_unanswered: true,
        };
        (timeline, ending)
    }

    fn judged(seed: u64, pace: impl Fn(f64) -> (f64, f64)) -> Steadiness {
        let (timeline, ending) = load(seed, pace);
        judge(&timeline, ending, None)
    }

    /// Of a backlog of the beginning, the rate of answers is above that due until it has drained.
    #[test]
    fn a_backlog_that_drains_is_no_change_of_the_rate_in_an_open_loop() {
        let pace = |s: f64| (if s < 2.4 { 625.0 } else { 1000.0 }, 800.0);
        for seed in 0..20 {
            assert!(matches!(judged(seed, pace), Steadiness::Unsteady(_)));
            let (timeline, ending) = load(seed, pace);
            let found = judge(&timeline, ending, Some(1000.0));
            assert_eq!(found, Steadiness::Steady, "{seed}");
        }
    }

    /// It answered a half of what was due, and then as much more.
    #[test]
    fn a_server_that_falls_behind_and_catches_up_is_told_as_that() {
        for seed in 0..20 {
            let at = if seed % 2 == 0 { 1.2 } else { 2.4 };
            let (timeline, ending) = load(seed, |s| (if s < at { 2000.0 } else { 600.0 }, 800.0));
            let found = judge(&timeline, ending, Some(1000.0));
            let text = found.text().unwrap();
            assert_eq!(text.starts_with("no steady state"), at > 2.0, "{text}");
            let said = "the server fell behind the rate that was due before ";
            assert!(text.contains(said) && !text.contains("rose"), "{text}");
        }
    }

    /// A fall below what is due is one in an open loop as well, and what is due and answered is steady.
    #[test]
    fn an_open_loop_whose_rate_falls_is_not_steady() {
        for seed in 0..20 {
            let (timeline, ending) = load(seed, |s| (if s < 2.1 { 1000.0 } else { 1700.0 }, 800.0));
            let found = judge(&timeline, ending, Some(1000.0));
            assert!(
                found.text().unwrap().contains("the rate fell by"),
                "{found:?}"
            );
            let (timeline, ending) = load(seed, |_| (1000.0, 800.0));
            assert_eq!(judge(&timeline, ending, Some(1000.0)), Steadiness::Steady);
        }
    }

    #[test]
    fn a_great_growth_is_told_by_how_many_times() {
        let change = |by| Change {
            quantity: Quantity::Rate,
            at_ns: 2_000_000_000,
            by,
        };
        let told = |by| change(by).text();
        assert_eq!(told(f64::INFINITY), "the rate rose from 0 after 2.00 s");
        assert_eq!(
            told(701.75),
            "the rate rose to 703 times as much after 2.00 s"
        );
        assert_eq!(told(-0.4), "the rate fell by 40 % after 2.00 s");
    }

    #[test]
    fn one_level_is_steady() {
        let steady = |it: &u64| judged(*it, |_| (1000.0, 800.0)) == Steadiness::Steady;
        assert!((0..300).filter(steady).count() >= 299);
    }

    #[test]
    fn a_stop_is_no_change() {
        for stop_ns in [2_900_000_000, 2_920_000_000, 2_950_000_000] {
            let until = |s: f64| {
                if s < stop_ns as f64 / 1e9 {
                    1000.0
                } else {
                    1e9
                }
            };
            let (timeline, ending) = load(7, |s| (until(s), 800.0));
            let ending = Ending {
                end_ns: stop_ns,
                all_ran_ns: stop_ns,
                ..ending
            };
            assert_eq!(judge(&timeline, ending, None), Steadiness::Steady);
        }
    }

    #[test]
    fn a_worker_that_ends_before_the_others_is_no_change() {
        let (timeline, ending) = load(7, |s| (if s < 2.9 { 500.0 } else { 1000.0 }, 800.0));
        let ending = Ending {
            all_ran_ns: 2_900_000_000,
            ..ending
        };
        assert_eq!(judge(&timeline, ending, None), Steadiness::Steady);
    }

    #[test]
    fn a_warm_up_is_found() {
        for seed in 0..20 {
            let found = judged(seed, |s| {
                if s < 0.8 {
                    (2000.0, 800.0)
                } else {
                    (1000.0, 800.0)
                }
            });
            let Steadiness::SteadyFrom(change) = found else {
                panic!("{found:?}");
            };
            assert_eq!(change.quantity, Quantity::Rate);
            assert!(
                change.at_ns.abs_diff(800_000_000) < 200_000_000,
                "{change:?}"
            );
            assert!(found.text().unwrap().contains("the rate rose by"));
            let line = found.line().unwrap();
            assert!(line.contains("see the warning") && !line.contains("rose"));
            assert!(found.warning(END_NS, false).unwrap().contains("--warm-up"));
        }
    }

    #[test]
    fn a_fall_is_no_steady_state() {
        for seed in 0..20 {
            let found = judged(seed, |s| {
                if s < 2.1 {
                    (600.0, 800.0)
                } else {
                    (1000.0, 800.0)
                }
            });
            let Steadiness::Unsteady(change) = found else {
                panic!("{found:?}");
            };
            assert!(
                change.at_ns.abs_diff(2_100_000_000) < 300_000_000,
                "{change:?}"
            );
            assert!((-0.5..-0.3).contains(&change.by), "{change:?}");
        }
    }

    /// Of 4 s, 100 ms at an end are 2.5 % of the time.
    #[test]
    fn an_end_that_hardly_moves_the_mean_is_no_change() {
        let another = |seed: u64, is_end: fn(f64) -> bool, gap_us: f64| {
            judged(seed, |s| (if is_end(s) { gap_us } else { 100.0 }, 800.0))
        };
        for seed in 0..20 {
            for is_end in [|s| s > 3.9, |s| s < 0.1] {
                assert_eq!(another(seed, is_end, 65.0), Steadiness::Steady, "{seed}");
            }
            // 46 % more in a tenth of the time is 4 % of the mean.
            let found = another(seed, |s| s > 3.6, 68.0);
            assert!(
                matches!(found, Steadiness::Unsteady(_)),
                "{seed}: {found:?}"
            );
        }
    }

    #[test]
    fn a_change_before_an_end_that_hardly_moves_the_mean_is_found() {
        let found = judged(3, |s| {
            let gap_us = match s {
                _ if s < 2.4 => 100.0,
                _ if s < 3.92 => 150.0,
                _ => 100.0,
            };
            (gap_us, 800.0)
        });
        let Steadiness::Unsteady(change) = found else {
            panic!("{found:?}");
        };
        assert!(change.at_ns.abs_diff(2_400_000_000) < 300_000_000);
    }

    #[test]
    fn a_growing_queue_is_no_steady_state() {
        let found = judged(1, |s| (1000.0, 800.0 + 500_000.0 * s));
        assert!(
            matches!(found, Steadiness::Unsteady(change) if change.quantity == Quantity::Latency)
        );
    }

    #[test]
    fn a_hang_is_no_steady_state_wherever_it_begins() {
        for at in [0.2, 0.5, 1.0, 1.9, 2.5, 3.9] {
            let found = judged(1, |s| {
                if s < at {
                    (1000.0, 800.0)
                } else {
                    (1e9, 800.0)
                }
            });
            let Steadiness::Silent { since_ns } = found else {
                panic!("{at}: {found:?}");
            };
            assert!(
                (since_ns as f64 / 1e9 - at).abs() < 0.05,
                "{at}: {since_ns}"
            );
        }
    }

    #[test]
    fn a_collapse_is_no_end_of_a_warm_up() {
        let found = judged(1, |s| {
            if s < 1.0 {
                (500.0, 800.0)
            } else {
                (5000.0, 800.0)
            }
        });
        assert!(matches!(found, Steadiness::Unsteady(_)), "{found:?}");
    }

    #[test]
    fn pauses_each_second_are_a_steady_state() {
        let pace = |s: f64| {
            if s.fract() < 0.2 {
                (20_000.0, 100_000.0)
            } else {
                (1000.0, 800.0)
            }
        };
        assert_eq!(judged(1, pace), Steadiness::Steady);
    }

    #[test]
    fn a_few_answers_are_not_judged() {
        assert_eq!(judged(1, |_| (50_000.0, 800.0)), Steadiness::Unknown);
    }

    #[test]
    fn the_change_is_where_the_ranks_say() {
        let step = |it: u32| f64::from(it * 3 % 5) + if it < 25 { 0.0 } else { 9.0 };
        assert_eq!(
            change_point(&(0..40).map(step).collect::<Vec<_>>()),
            Some(25)
        );
        let cycle: Vec<f64> = (0..40).map(|it| f64::from(it % 5)).collect();
        assert_eq!(change_point(&cycle), None);
        assert_eq!(change_point(&[1.0; 40]), None);
        assert_eq!((change_point(&[1.0]), change_point(&[])), (None, None));
        let short: Vec<f64> = (0..96)
            .map(|it| f64::from(it % 7) + if it < 3 { 9.0 } else { 0.0 })
            .collect();
        assert_eq!(change_point(&short), Some(3));
    }
}
