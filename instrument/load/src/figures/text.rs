//! The figures as a table in text.

use std::fmt::Write;

use super::distribution::{Distribution, Percentile};
use super::{Figures, LAG_PERCENTILES, P99, P99_PLACE, percentiles};
use crate::called;
use crate::dataset::Verified;
use crate::plan::{Pace, Plan, Runners, Target};
use crate::units::{bytes, count, percent, time};

/// Width of the first column.
const NAME_WIDTH: usize = 13;
/// The first of [`PERCENTILES`].
const COLUMNS: [&str; 4] = ["p50", "p90", "p99", "p99.9"];

/// The table of a run, 80 columns wide.
pub fn table(plan: &Plan, figures: &Figures) -> String {
    let mut text = String::new();
    for doubt in &figures.doubts {
        let _ = writeln!(text, "in doubt: {doubt}");
    }
    let _ = writeln!(
        text,
        "{}: {}\n",
        plan.target_name(),
        sessions(plan, figures.pace)
    );
    latencies(plan, figures, &mut text);
    text.push('\n');
    for (name, value) in facts(plan, figures) {
        let _ = writeln!(text, "{name:<NAME_WIDTH$}{value}");
    }
    for warning in &figures.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    text
}

/// The lines that say that the data was verified. After a load they say which transactions its figures do
/// not count: those of its warm-up, and those that were under way at its end.
pub fn verified(verified: &Verified, load: Option<&Figures>) -> String {
    let checks = count(verified.checks as f64);
    let found = match verified.found {
        Some(found) => format!(
            ", and {} transactions are found{}",
            count(found as f64),
            load.map_or(String::new(), |it| parts(found, it))
        ),
        None => String::new(),
    };
    format!("{:<NAME_WIDTH$}{checks} checks hold{found}\n", "verified")
}

/// How many of the transactions that are found were answered in the measured time, where others are found.
fn parts(found: i64, load: &Figures) -> String {
    let measured = load.total.ok as i64;
    let unanswered = match load.all.in_doubt {
        0 => "",
        _ => ", or without an answer",
    };
    match found - measured {
        0 => String::new(),
        others => format!(
            ":\n{:NAME_WIDTH$}{} answered in the measured time and {} before or after it{unanswered}",
            "",
            count(measured as f64),
            count(others as f64)
        ),
    }
}

/// A row for all, and one for each kind of transaction if there are several.
fn latencies(plan: &Plan, figures: &Figures, text: &mut String) {
    let _ = write!(
        text,
        "{:<NAME_WIDTH$}{:>11}{:>10}",
        "", "per second", "mean"
    );
    for name in COLUMNS {
        let _ = write!(text, "{name:>9}");
    }
    let _ = writeln!(text, "{:>9}", "max");
    let mut row = |name: &str, of: &Distribution, percentiles: &[Percentile]| {
        let rate = match figures.wall_seconds {
            seconds if seconds > 0.0 => of.answered().len() as f64 / seconds,
            _ => 0.0,
        };
        times(name, &count(rate), of, percentiles, text);
    };
    let kinds = plan.workload.kinds();
    if kinds.len() > 1 {
        for (kind, of) in kinds.iter().zip(&figures.kinds) {
            row(&kind.name, of, &percentiles(of, None));
        }
        row("all", &figures.latency, &figures.percentiles);
    } else {
        row(&kinds[0].name, &figures.latency, &figures.percentiles);
    }
    intervals(figures, text);
    if let Some(sent) = &figures.sent {
        times("from sending", "", &sent.service, &sent.percentiles, text);
    }
}

/// A row of a distribution.
fn times(name: &str, rate: &str, of: &Distribution, percentiles: &[Percentile], text: &mut String) {
    let _ = write!(text, "{:<NAME_WIDTH$}{rate:>11}", shortened(name));
    if !of.is_empty() {
        let (mean, max) = (of.mean(), of.max());
        let _ = write!(text, "{:>10}", bounded(mean.ns, mean.is_censored));
        for percentile in &percentiles[..COLUMNS.len()] {
            let value = bounded(percentile.ns as f64, percentile.is_censored);
            let _ = write!(text, "{value:>9}");
        }
        let _ = write!(text, "{:>9}", bounded(max.ns, max.is_censored));
    }
    text.push('\n');
}

/// The ends of the intervals of the percentiles, below the row of all transactions.
fn intervals(figures: &Figures, text: &mut String) {
    let percentiles = &figures.percentiles[..COLUMNS.len()];
    if percentiles
        .iter()
        .all(|it| it.low_ns.is_none() && it.high_ns.is_none())
    {
        return;
    }
    let mut row = |name: &str, end: fn(&Percentile) -> Option<u64>| {
        let _ = write!(text, "{name:>width$}", width = NAME_WIDTH + 21);
        for end in percentiles.iter().map(end) {
            let value = end.map_or("?".to_owned(), |ns| time(ns as f64));
            let _ = write!(text, "{value:>9}");
        }
        text.push('\n');
    };
    row("95 % interval from", |it| it.low_ns);
    row("to", |it| it.high_ns);
}

/// A time, or a lower bound of one.
pub(super) fn bounded(ns: f64, is_censored: bool) -> String {
    match is_censored {
        true => format!(">{}", time(ns)),
        false => time(ns),
    }
}

fn shortened(name: &str) -> String {
    name.chars().take(NAME_WIDTH - 1).collect()
}

/// The lines below the table of latencies.
fn facts(plan: &Plan, figures: &Figures) -> Vec<(&'static str, String)> {
    let (all, total) = (&figures.all, &figures.total);
    let number = |value: u64| count(value as f64);
    let empty = match total.empty {
        0 => String::new(),
        empty => format!(", {} empty", number(empty)),
    };
    let mut facts = vec![(
        "answered",
        format!(
            "{} in {:.2} s ({} refused, {} errors{empty})",
            number(total.answered()),
            figures.wall_seconds,
            number(total.refused),
            number(total.failed() - all.transactions_lost)
        ),
    )];
    if all.transactions_lost > 0 {
        let lost = number(all.transactions_lost);
        let value = format!("{lost} with their connections (errors without an answer)");
        facts.push(("lost", value));
    }
    let unanswered = number(figures.unanswered);
    if let Some(greatest) = &figures.greatest {
        let repeated = match greatest.is_repeated {
            true => " (of two: the machine was busy in the first)",
            false => "",
        };
        let value = format!(
            "{} of the {} per second that a closed loop of {} reached before{repeated}",
            percent(greatest.share),
            number(greatest.rate_per_second as u64),
            time(greatest.seconds * 1e9)
        );
        facts.push(("rate", value));
    }
    facts.extend(figures.of_p99(plan).map(|it| {
        // What to report depends on how long an attached server waited for a CPU: its observer says it.
        let said = match called::beside_attached() {
            true => p99_times(figures),
            false => p99(it, figures),
        };
        ("p99", said)
    }));
    if let Pace::Open { .. } = figures.pace {
        let (due, answered) = (number(figures.due), number(total.answered()));
        let skipped = number(all.skipped);
        let lost = match all.transactions_lost {
            0 => String::new(),
            lost => format!(" {} lost,", number(lost)),
        };
        let value =
            format!("{due}: {answered} answered,{lost} {unanswered} unanswered, {skipped} skipped");
        facts.push(("due", value));
        let share = match all.late {
            0 => String::new(),
            _ => format!(" ({})", percent(figures.late_share())),
        };
        let value = format!("{}{share} sent over 1 ms late", number(all.late));
        facts.push(("schedule", value));
        if let Some(sent) = &figures.sent {
            let at = |(name, share): (&str, f64)| {
                let ns = sent.lag_ns.value_at_quantile(share);
                format!("{name} {}, ", time(ns as f64))
            };
            let usual = LAG_PERCENTILES.map(at).concat();
            let max = time(all.lag_ns_max as f64);
            let value = format!("{usual}at most {max} from when due to sending");
            facts.push(("lag", value));
        }
        let value = "counted from when a request was due, but for the row from sending";
        facts.push(("latency", value.to_owned()));
    } else if figures.unanswered > 0 {
        facts.push(("unanswered", format!("{unanswered} at the end")));
    }
    facts.extend(figures.steadiness.line().map(|it| ("steady", it)));
    if let Some(fairness) = figures.fairness.filter(|_| plan.sessions > 1) {
        let counts = || all.sessions.iter().map(|it| it.transactions);
        let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        let (least, most) = (number(least), number(most));
        let value = format!("{least} to {most} transactions each (Jain's fairness {fairness:.4})");
        facts.push(("sessions", value));
    }
    let connection = &all.connection_ns;
    let (p50, max) = (connection.value_at_percentile(50.0), connection.max());
    let value = format!("p50 {}, slowest {}", time(p50 as f64), time(max as f64));
    facts.push(("connecting", value));
    if let Some(data) = &plan.dataset {
        let trips = plan.workload.kinds()[0].round_trips.len();
        let noun = if trips == 1 { "trip" } else { "trips" };
        let value = format!("{}; {trips} round {noun} a transaction", data.size());
        facts.push(("data", value));
    }
    let (sent, received) = (all.usage.bytes_sent as f64, all.usage.bytes_received as f64);
    if let Target::Server(_) = plan.target {
        let value = format!("{} sent, {} received", bytes(sent), bytes(received));
        facts.push(("traffic", value));
    }
    if all.usage.waits > 0 {
        let value = format!("{} for another session", number(all.usage.waits));
        facts.push(("waits", value));
    }
    if let Some(cpu_ns) = figures.client_cpu_ns_per_operation {
        let busy = figures.busiest_thread_share * 100.0;
        let value = format!(
            "{} CPU a transaction, busiest thread {busy:.0} % of a CPU",
            time(cpu_ns)
        );
        facts.push(("client", value));
    }
    facts
}

/// Which 99th percentile to report, and what makes most of it; none of a run in doubt.
pub fn p99(of: P99, figures: &Figures) -> String {
    if !figures.doubts.is_empty() {
        return format!("in doubt, report none: {}", p99_times(figures));
    }
    let [due, sending] = p99_shown(figures);
    match of {
        P99::Client => format!("{}: mostly the load's own", p99_times(figures)),
        P99::Cpu => {
            format!("report {sending} from sending; {due} from due is the load's lateness")
        }
        P99::Wait => format!("report {due} from due, mostly the wait until sent"),
        P99::Answer => format!("report {due} from due, mostly the server's, from sending on"),
    }
}

/// Both 99th percentiles of an open loop.
fn p99_times(figures: &Figures) -> String {
    let [due, sending] = p99_shown(figures);
    format!("{due} from due, {sending} from sending")
}

/// The 99th percentiles of an open loop from when a request was due, and from sending.
fn p99_shown(figures: &Figures) -> [String; 2] {
    let shown = |of: &[Percentile]| bounded(of[P99_PLACE].ns as f64, of[P99_PLACE].is_censored);
    let sent = figures.sent.as_ref();
    [
        shown(&figures.percentiles),
        sent.map_or_else(String::new, |it| shown(&it.percentiles)),
    ]
}

fn sessions(plan: &Plan, pace: Pace) -> String {
    let pace = match pace {
        Pace::Closed { think_ns: 0 } => "closed loop".to_owned(),
        Pace::Closed { think_ns } => format!("closed loop, {} pause", time(think_ns as f64)),
        Pace::Open {
            rate_per_second,
            spread,
            ..
        } => {
            let spread = format!("{spread:?}").to_lowercase();
            format!("open loop, {} per second, {spread}", count(rate_per_second))
        }
    };
    let pipeline = match plan.pipeline {
        1 => String::new(),
        depth => format!(", {depth} under way each"),
    };
    let spinning = match plan.spin_ns {
        0 => String::new(),
        ns => format!(", spinning {}", time(ns as f64)),
    };
    let runners = match plan.runners {
        Runners::Threads(1) => "one thread".to_owned(),
        Runners::Threads(threads) if threads == plan.sessions => "a thread each".to_owned(),
        Runners::Threads(threads) => format!("{threads} threads"),
        Runners::Processes => "a process each".to_owned(),
    };
    let noun = if plan.sessions == 1 {
        "session"
    } else {
        "sessions"
    };
    format!(
        "{} {noun} on {runners}, {pace}{pipeline}{spinning}",
        plan.sessions
    )
}
