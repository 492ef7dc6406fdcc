//! Transactions that were not answered, in the distributions of latencies.

use hdrhistogram::Histogram;

use super::distribution::Distribution;
use crate::counts::histogram::histogram;
use crate::counts::tally::{KindTally, Tally};
use crate::plan::Pace;
use crate::workload::TransactionKind;

/// A session that hangs is given so many transactions that it could not begin, at most: if they were
/// more, one stands for several.
const STEPS_MAX: u64 = 1000;

/// The distributions of latencies, with what was not answered.
pub struct Unanswered {
    /// Transactions that were due, and not answered, lost or skipped.
    pub unanswered: u64,
    /// Closed loop: transactions that sessions which hang would have begun at their usual pace. They are in
    /// the distributions, and neither due nor unanswered.
    pub kept_from_beginning: u64,
    /// Of all kinds, and of each.
    pub latency: Distribution,
    pub kinds: Vec<Distribution>,
}

/// Adds those that were not answered to the distributions, and to the timeline.
pub fn distributions(pace: Pace, all: &mut Tally, total: &KindTally) -> Unanswered {
    let mut ages: Vec<Histogram<u64>> = match all.ages.is_empty() {
        true => all.kinds.iter().map(|_| histogram()).collect(),
        false => all.ages.iter().map(|it| it.0.clone()).collect(),
    };
    let mut unanswered = all.unanswered;
    let mut kept_from_beginning = 0;
    if let Pace::Closed { think_ns } = pace {
        let hanging = add_hanging(all, total, think_ns, &mut ages);
        unanswered += hanging.under_way;
        kept_from_beginning = hanging.kept_from_beginning;
    }
    let wall_ns = all.wall_ns();
    for age in ages.iter().flat_map(|it| it.iter_recorded()) {
        let age_ns = age.value_iterated_to();
        let due_ns = wall_ns.saturating_sub(age_ns);
        let count = age.count_at_value();
        all.timeline.add_unanswered(due_ns, age_ns, count);
    }
    let mut sum = histogram();
    ages.iter().for_each(|it| sum += it);
    let of_kind = |(kind, ages): (&KindTally, Histogram<u64>)| {
        Distribution::new(kind.latency_ns.clone(), Some(ages))
    };
    Unanswered {
        unanswered,
        kept_from_beginning,
        latency: Distribution::new(total.latency_ns.clone(), Some(sum)),
        kinds: all.kinds.iter().zip(ages).map(of_kind).collect(),
    }
}

/// What hangs at the end of a closed loop.
struct Hanging {
    /// Transactions under way.
    under_way: u64,
    /// Those that were not begun because of them.
    kept_from_beginning: u64,
}

/// Closed loop: adds transactions that were under way at the end for longer than any answer took, and
/// returns their number. The others are as old as in any closed loop.
///
/// A session that hangs begins no others, so that the more it hangs, the less it counts. It is given
/// those that it would have begun at its usual pace, as `recordValueWithExpectedInterval` of
/// HdrHistogram does for answers that come late (Tene 2013): one for each mean cycle of the measured time,
/// and no more than it was to begin.
fn add_hanging(
    all: &Tally,
    total: &KindTally,
    think_ns: u64,
    ages: &mut [Histogram<u64>],
) -> Hanging {
    let wall_ns = all.wall_ns();
    let longest_ns = total.latency_ns.max();
    let cycle_ns = match total.answered() {
        0 => u64::MAX,
        _ => (total.latency_ns.mean() as u64 + think_ns).max(1),
    };
    let mut hanging = Hanging {
        under_way: 0,
        kept_from_beginning: 0,
    };
    for it in all.in_flight.iter().filter(|it| it.age_ns > longest_ns) {
        hanging.under_way += 1;
        let ages = &mut ages[it.kind];
        ages.saturating_record(it.age_ns);
        // It may hang since the warm-up, in which none counts.
        let within_ns = it.age_ns.min(wall_ns);
        let others = (within_ns / cycle_ns).min(it.others_max);
        hanging.kept_from_beginning += others;
        let steps = others.min(STEPS_MAX);
        for step in 1..=steps {
            let (before, counted) = (others * (step - 1) / steps, others * step / steps);
            // The one in the middle stands for all of a step.
            let later_ns = (before + counted).div_ceil(2) * cycle_ns;
            ages.saturating_record_n((within_ns - later_ns).max(1), counted - before);
        }
    }
    hanging
}

/// Open loop: a worker that has lost all of its sessions ends, and its part of the schedule is still due
/// until all have ended. How much that is follows from the rate. One that had lost them before measuring
/// began has ended at that time. Where a number is to be done, what it did not begin is counted already.
pub fn add_due_of_lost_workers(
    sessions: u64,
    kinds: &[TransactionKind],
    pace: Pace,
    ends_by_number: bool,
    tallies: &mut [Tally],
) {
    let Pace::Open {
        rate_per_second, ..
    } = pace
    else {
        return;
    };
    let measured = tallies.iter().filter(|it| it.end_ns > 0);
    let Some(begin_ns) = measured.map(|it| it.begin_ns).min() else {
        return;
    };
    let end_ns = tallies.iter().map(|it| it.end_ns).max().unwrap_or(0);
    let weights: Vec<u64> = kinds.iter().map(|it| u64::from(it.weight)).collect();
    for tally in tallies {
        let lost: u64 = tally.lost.values().sum();
        if lost < tally.sessions.len() as u64 {
            continue;
        }
        if tally.end_ns == 0 {
            (tally.begin_ns, tally.end_ns) = (begin_ns, begin_ns);
        }
        let own = tally.sessions.len() as f64 / sessions as f64;
        let interval_ns = 1e9 / (rate_per_second * own);
        let rest_ns = (end_ns - tally.end_ns) as f64;
        // What was not answered before is older by the rest as well.
        for ages in &mut tally.ages {
            ages.0 = older(&ages.0, rest_ns as u64);
        }
        if let Some(sent) = &mut tally.sent {
            sent.unanswered_ns = older(&sent.unanswered_ns, rest_ns as u64);
        }
        let (mut ticket, all) = (0, weights.iter().sum::<u64>());
        let became_due = match ends_by_number {
            true => 0,
            false => (rest_ns / interval_ns) as u64,
        };
        for number in 0..became_due {
            ticket = (ticket + 1) % all;
            let kind = kind_of(ticket, &weights);
            let age_ns = (number as f64 * interval_ns) as u64;
            tally.add_age(kind, age_ns, 1);
            tally.unanswered += 1;
            tally.due += 1;
        }
    }
}

/// The same ages, each by so much older.
fn older(ages: &Histogram<u64>, by_ns: u64) -> Histogram<u64> {
    let mut older = histogram();
    for age in ages.iter_recorded() {
        let age_ns = age.value_iterated_to() + by_ns;
        older.saturating_record_n(age_ns, age.count_at_value());
    }
    older
}

/// The kind with this ticket, of as many as the sum of the weights.
fn kind_of(mut ticket: u64, weights: &[u64]) -> usize {
    let found = weights.iter().position(|weight| {
        let found = ticket < *weight;
        ticket = ticket.saturating_sub(*weight);
        found
    });
    found.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::tally::InFlight;
    use crate::plan::Spread;
    use crate::workload::Ending;

    #[test]
    fn a_worker_that_lost_its_sessions_before_measuring_was_due_to_do_its_part() {
        let pace = Pace::Open {
            rate_per_second: 1000.0,
            spread: Spread::Constant,
            backlog_max: 0,
        };
        let kinds = [TransactionKind {
            name: "get".to_owned(),
            weight: 1,
            round_trips: std::iter::once(0..1).collect(),
        }];
        let due_by = |ends_by_number: bool, lost_all: bool, measured: bool| {
            let mut tallies = [Tally::new(1, 3), Tally::new(1, 1)];
            if measured {
                (tallies[0].begin_ns, tallies[0].end_ns) = (5_000_000_000, 7_000_000_000);
            }
            if lost_all {
                tallies[1].lost.insert("reset by peer".to_owned(), 1);
            }
            add_due_of_lost_workers(4, &kinds, pace, ends_by_number, &mut tallies);
            (tallies[1].due, tallies[1].unanswered)
        };
        let due = |lost_all, measured| due_by(false, lost_all, measured);
        // A quarter of the sessions, for 2 s.
        assert_eq!(due(true, true), (500, 500));
        assert_eq!(due(false, true), (0, 0));
        assert_eq!(due(true, false), (0, 0), "nothing was measured at all");
        assert_eq!(due_by(true, true, true), (0, 0), "it is not begun");
    }

    fn hanging(age_ns: u64, others_max: u64) -> InFlight {
        InFlight {
            kind: 0,
            age_ns,
            others_max,
        }
    }

    /// The figures of a second in which transactions took 1 ms, and this one hangs at the end.
    fn hangs(it: InFlight) -> Unanswered {
        let mut all = Tally::new(1, 1);
        (all.begin_ns, all.end_ns) = (0, 1_000_000_000);
        for _ in 0..10 {
            all.end(0, 0, 1_000_000, Ending::Ok);
        }
        all.in_flight.push(it);
        let total = all.total();
        distributions(Pace::Closed { think_ns: 0 }, &mut all, &total)
    }

    #[test]
    fn a_session_that_hangs_counts_no_more_than_it_was_to_begin() {
        let found = hangs(hanging(500_000_000, 0));
        assert_eq!((found.unanswered, found.kept_from_beginning), (1, 0));
        let found = hangs(hanging(500_000_000, 7));
        assert_eq!((found.unanswered, found.kept_from_beginning), (1, 7));
        // They would have followed at once: each has waited for nearly as long.
        let ages = found.latency.unanswered();
        assert_eq!(ages.count_between(490_000_000, 510_000_000), 8);
    }

    #[test]
    fn a_session_that_hangs_since_the_warm_up_counts_what_the_measured_time_holds() {
        let found = hangs(hanging(60_000_000_000, u64::MAX));
        assert_eq!(found.unanswered, 1);
        assert!(found.kept_from_beginning.abs_diff(1000) <= 1);
        let ages = found.latency.unanswered();
        let within = ages.count_between(1, 1_000_000_000);
        assert_eq!(within, found.kept_from_beginning);
    }

    #[test]
    fn a_session_that_hangs_counts_what_it_could_not_begin() {
        let mut all = Tally::new(1, 2);
        (all.begin_ns, all.end_ns) = (0, 1_000_000_000);
        for _ in 0..10 {
            all.end(0, 0, 1_000_000, Ending::Ok);
        }
        for age_ns in [500_000_000, 900_000] {
            all.in_flight.push(hanging(age_ns, u64::MAX));
        }
        let total = all.total();
        let pace = Pace::Closed {
            think_ns: 9_000_000,
        };
        let found = distributions(pace, &mut all, &total);
        // One cycle is 10 ms; the session that waits for less than an answer took does not hang.
        assert_eq!(found.unanswered, 1);
        assert!(found.kept_from_beginning.abs_diff(50) <= 1);
        let in_distribution = found.latency.unanswered().len();
        assert_eq!(
            in_distribution,
            found.unanswered + found.kept_from_beginning
        );
    }
}
