//! The result of a search as text, as JSON and on the report channel.

use concurve_reporter::Reporter;
use serde_json::{Value, json};

use super::live::SearchResult;
use super::search::Outcome;
use crate::error::Error;
use crate::figures::{busy_client, lost_sessions};
use crate::plan::Plan;
use crate::units::{count, time};

/// Above this share of what the sessions reach without pauses, the sessions limit, not the
/// objective.
const AT_CAPACITY: f64 = 0.95;
/// Upper end over lower end above which an interval is too wide to say much.
const WIDE: f64 = 1.5;

/// The result in a few lines.
pub fn text(plan: &Plan, found: &SearchResult) -> String {
    let search = &found.search;
    let mut text = format!("{}: {}\n", plan.target_name(), verdict(found));
    text.push_str(&format!(
        "{} sessions reach {} per second without pauses; {} windows of {}\n",
        plan.sessions,
        count(search.capacity),
        search.windows.len(),
        time(found.window_ns as f64)
    ));
    for warning in warnings(plan, found) {
        text.push_str(&format!("warning: {warning}\n"));
    }
    text
}

/// The result in a sentence.
fn verdict(found: &SearchResult) -> String {
    let texts: Vec<&str> = found.objectives.iter().map(|it| it.text.as_str()).collect();
    let all = texts.join(", ");
    match found.search.outcome {
        Outcome::Found {
            rate,
            low,
            high,
            objective,
        } => {
            let limits = match texts.len() {
                1 => String::new(),
                _ => format!("; {} limits the rate", texts[objective]),
            };
            format!(
                "{all} kept up to {} per second (95 % interval {} to {}){limits}",
                count(rate.round()),
                count(low.round()),
                count(high.round())
            )
        }
        Outcome::NeverKept { rate, objective } => format!(
            "{} is not kept at any rate: it is missed even at {} per second",
            texts[objective],
            count(rate)
        ),
        Outcome::AlwaysKept { rate } => format!(
            "{all} kept at every rate that these sessions can send, up to {} per second",
            count(rate.round())
        ),
        Outcome::Undecided => {
            format!("the measurements do not decide what rate keeps {all}; try a longer --duration")
        }
    }
}

fn warnings(plan: &Plan, found: &SearchResult) -> Vec<String> {
    let (search, mut warnings) = (&found.search, Vec::new());
    warnings.extend(lost_sessions(plan, &found.lost));
    warnings.extend(busy_client(plan, found.busiest_thread_share));
    if let Outcome::Found { low, high, .. } = search.outcome
        && high > WIDE * low
    {
        warnings.push(
            "windows at similar rates differ much: requests are slow for another reason than the rate; \
            use a quieter machine, or a longer --duration"
                .to_owned(),
        );
    }
    if let Outcome::Found { rate, .. } = search.outcome
        && rate > AT_CAPACITY * search.capacity
    {
        warnings.push(
            "that is about all that these sessions can send: more --sessions may reach more"
                .to_owned(),
        );
    }
    warnings
}

/// All that was measured.
pub fn json(plan: &Plan, found: &SearchResult) -> Value {
    let search = &found.search;
    let texts: Vec<&str> = found.objectives.iter().map(|it| it.text.as_str()).collect();
    let mut value = json!({
        "server": plan.target_name(),
        "sessions": plan.sessions,
        "objectives": texts,
        "verdict": verdict(found),
        "closed_rate_per_second": search.capacity,
        "window_seconds": found.window_ns as f64 / 1e9,
        "client_threads_busy_share_max": found.busiest_thread_share,
        "sessions_lost": found.sessions_lost(),
        "warnings": warnings(plan, found),
        "windows": search.windows.iter().map(|window| json!({
            "rate_per_second": window.rate,
            "requests": window.requests,
            "bad": window.bad,
        })).collect::<Vec<_>>(),
    });
    for (name, number) in rates(found) {
        value[name] = json!(number);
    }
    value
}

/// The rate and its interval, as far as they are known.
fn rates(found: &SearchResult) -> Vec<(&'static str, f64)> {
    match found.search.outcome {
        Outcome::Found {
            rate, low, high, ..
        } => vec![
            ("slo_rate_per_second", rate),
            ("slo_rate_low_per_second", low),
            ("slo_rate_high_per_second", high),
        ],
        Outcome::AlwaysKept { rate } => vec![("slo_rate_low_per_second", rate)],
        Outcome::NeverKept { rate, .. } => vec![("slo_rate_high_per_second", rate)],
        Outcome::Undecided => Vec::new(),
    }
}

/// Reports the result.
pub fn report(plan: &Plan, found: &SearchResult, reporter: &Reporter) -> Result<(), Error> {
    for (name, number) in rates(found) {
        reporter.indicator(name, number, None)?;
    }
    let capacity = found.search.capacity;
    reporter.indicator("closed_rate_per_second", capacity, None)?;
    reporter.indicator("sessions_lost", found.sessions_lost() as f64, None)?;
    let busy = found.busiest_thread_share;
    reporter.indicator("client_threads_busy_share_max", busy, None)?;
    reporter.fact("slo", json(plan, found))?;
    Ok(())
}
