//! Figures → what is printed.

use std::fmt::Write;

use crate::figures::{Figures, PERCENTILES};
use crate::plan::{Pace, Plan, Runners};

/// The table of a run.
pub fn table(plan: &Plan, figures: &Figures) -> String {
    let mut text = String::new();
    let total = &figures.total;
    let line = |text: &mut String, name: &str, value: String| {
        let _ = writeln!(text, "{name:<14}{value}");
    };
    line(&mut text, "server", plan.server.text());
    line(&mut text, "sessions", sessions(plan));
    line(
        &mut text,
        "measured",
        format!("{:.3} s", figures.wall_seconds),
    );
    line(
        &mut text,
        "transactions",
        format!(
            "{} ({} refused, {} errors), {} per second",
            total.answered(),
            total.refused,
            total.failed(),
            significant(figures.rate_per_second)
        ),
    );
    if !total.latency_ns.is_empty() {
        let latency = &total.latency_ns;
        let mut values = vec![format!("mean {}", time(latency.mean()))];
        values.extend(PERCENTILES.iter().map(|(name, percentile)| {
            format!(
                "{name} {}",
                time(latency.value_at_percentile(*percentile) as f64)
            )
        }));
        values.push(format!("max {}", time(latency.max() as f64)));
        line(&mut text, "latency", values.join("  "));
    }
    if let Some(cpu_ns) = figures.client_cpu_ns_per_operation {
        let busy = figures.busiest_thread_share * 100.0;
        let value = format!(
            "{} CPU a transaction, busiest thread {busy:.0} %",
            time(cpu_ns)
        );
        line(&mut text, "client", value);
    }
    if let Pace::Open { .. } = plan.pace {
        let (all, lag) = (&figures.all, time(figures.all.lag_ns_max as f64));
        let value = format!("{} late (at most {lag}), {} skipped", all.late, all.skipped);
        line(&mut text, "schedule", value);
    }
    for warning in &figures.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    text
}

fn sessions(plan: &Plan) -> String {
    let pace = match plan.pace {
        Pace::Closed { think_ns: 0 } => "closed loop".to_owned(),
        Pace::Closed { think_ns } => format!("closed loop, {} pause", time(think_ns as f64)),
        Pace::Open {
            rate_per_second,
            spread,
            ..
        } => format!("open loop, {rate_per_second} per second, {spread:?}").to_lowercase(),
    };
    let pipeline = match plan.pipeline {
        1 => String::new(),
        depth => format!(", {depth} under way each"),
    };
    let crew = match plan.runners {
        Runners::Threads(1) => "one thread".to_owned(),
        Runners::Threads(threads) => format!("{threads} threads"),
        Runners::Processes => "a process each".to_owned(),
    };
    format!("{} on {crew}, {pace}{pipeline}", plan.sessions)
}

/// A time with its unit, in three digits.
fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{} µs", significant(ns / 1e3)),
        ns if ns < 1e9 => format!("{} ms", significant(ns / 1e6)),
        ns => format!("{} s", significant(ns / 1e9)),
    }
}

fn significant(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}
