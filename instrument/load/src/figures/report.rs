//! The figures on the report channel of a trial.

use concurve_reporter::Reporter;
use concurve_reporter::line::{HistogramLine, ReportLine};
use hdrhistogram::Histogram;

use super::distribution::{Distribution, Percentile};
use super::{Figures, LAG_PERCENTILES, PERCENTILES, Sent, json};
use crate::called;
use crate::counts::histogram::encode;
use crate::dataset::{DatasetInDatabase, Verified};
use crate::error::Error;
use crate::plan::Plan;

/// Reports all figures.
pub fn write(plan: &Plan, figures: &Figures, reporter: &Reporter) -> Result<(), Error> {
    if !reporter.is_connected() {
        return Ok(());
    }
    let total = &figures.total;
    let indicators = [
        ("operations", (total.ok + total.refused) as f64, None),
        ("refused", total.refused as f64, None),
        ("empty", total.empty as f64, None),
        ("errors", total.failed() as f64, None),
        ("acknowledged", figures.all.acknowledged as f64, None),
        ("in_doubt", figures.all.in_doubt as f64, None),
        ("sessions_lost", figures.sessions_lost as f64, None),
        ("not_begun", figures.all.not_begun as f64, None),
        ("due", figures.due as f64, None),
        ("unanswered", figures.unanswered as f64, None),
        (
            "transactions_lost",
            figures.all.transactions_lost as f64,
            None,
        ),
        ("late", figures.all.late as f64, None),
        ("skipped", figures.all.skipped as f64, None),
        ("lag_ns_max", figures.all.lag_ns_max as f64, Some("ns")),
        ("bytes_sent", figures.all.usage.bytes_sent as f64, Some("B")),
        (
            "bytes_received",
            figures.all.usage.bytes_received as f64,
            Some("B"),
        ),
        ("engine_waits", figures.all.usage.waits as f64, None),
        (
            "client_threads_busy_share_max",
            figures.busiest_thread_share,
            None,
        ),
        ("concurrency_mean", figures.concurrency, None),
    ];
    for (name, value, unit) in indicators {
        reporter.indicator(name, value, unit)?;
    }
    if let Some(fairness) = figures.fairness {
        reporter.indicator("session_fairness", fairness, None)?;
    }
    if let Some(cpu_ns) = figures.client_cpu_ns_per_operation {
        reporter.indicator("client_cpu_ns_per_operation", cpu_ns, Some("ns"))?;
    }
    if let Some((asked, share)) = figures.rate_asked() {
        reporter.indicator("rate_asked_per_second", asked, Some("1/s"))?;
        reporter.indicator("rate_asked_share", share, None)?;
    }
    if let Some(greatest) = &figures.greatest {
        let rate = greatest.rate_per_second;
        reporter.indicator("closed_rate_per_second", rate, None)?;
        reporter.fact("rate_asked_of_closed_rate", greatest.share)?;
    }
    latencies(figures, reporter)?;
    if let Some(sent) = &figures.sent {
        sent_times(sent, reporter)?;
    }
    sessions(figures, reporter)?;
    best_and_worst(figures, reporter)?;
    histogram("latency", None, figures.latency.answered(), reporter)?;
    if !figures.latency.unanswered().is_empty() {
        let ages = figures.latency.unanswered();
        histogram("age of unanswered", None, ages, reporter)?;
    }
    for (number, worker) in figures.workers.iter().enumerate() {
        let name = format!("worker-{number}");
        histogram("latency", Some(name), &worker.latency_ns, reporter)?;
    }
    for (kind, tally) in plan.workload.kinds().iter().zip(&figures.all.kinds) {
        let name = format!("latency {}", kind.name);
        histogram(&name, None, &tally.latency_ns, reporter)?;
    }
    histogram("connection", None, &figures.all.connection_ns, reporter)?;
    reporter.fact("loop", format!("{:?}", figures.pace))?;
    let round_trips: Vec<usize> = plan
        .workload
        .kinds()
        .iter()
        .map(|it| it.round_trips.len())
        .collect();
    reporter.fact("round_trips_per_transaction", round_trips)?;
    if let Some(size) = plan.dataset.as_ref().map(DatasetInDatabase::size) {
        reporter.fact("data", size)?;
    }
    reporter.fact("errors_by_kind", serde_json::json!(total.errors))?;
    reporter.fact(
        "sessions_lost_by_reason",
        serde_json::json!(figures.all.lost),
    )?;
    if called::beside_attached() {
        reporter.fact("p99", json::p99(plan, figures))?;
    }
    reporter.fact("warnings", serde_json::json!(figures.said()))?;
    Ok(())
}

/// Reports that the data was verified.
pub fn verified(verified: &Verified, reporter: &Reporter) -> Result<(), Error> {
    reporter.indicator("checks_held", verified.checks as f64, None)?;
    if let Some(found) = verified.found {
        reporter.indicator("transactions_found", found as f64, None)?;
    }
    Ok(())
}

/// The counts of each session.
fn sessions(figures: &Figures, reporter: &Reporter) -> Result<(), Error> {
    for (number, session) in figures.all.sessions.iter().enumerate() {
        let name = format!("session-{number}");
        let count = session.transactions as f64;
        reporter.worker_indicator("session_operations", count, None, &name)?;
        if session.transactions == 0 {
            continue;
        }
        let (mean, max) = (
            session.latency_ns_sum as f64 / count,
            session.latency_ns_max as f64,
        );
        let seconds = session.last_ns as f64 / 1e9;
        reporter.worker_indicator("session_latency_ns_mean", mean, Some("ns"), &name)?;
        reporter.worker_indicator("session_latency_ns_max", max, Some("ns"), &name)?;
        reporter.worker_indicator("session_seconds", seconds, Some("s"), &name)?;
    }
    Ok(())
}

/// What the session that did least and the one that did most have done, and all of them in the mean.
fn best_and_worst(figures: &Figures, reporter: &Reporter) -> Result<(), Error> {
    let sessions = figures.all.sessions.iter();
    let counts: Vec<u64> = sessions.map(|session| session.transactions).collect();
    let (Some(least), Some(most)) = (counts.iter().min(), counts.iter().max()) else {
        return Ok(());
    };
    let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    reporter.indicator("session_operations_min", *least as f64, None)?;
    reporter.indicator("session_operations_mean", mean, None)?;
    reporter.indicator("session_operations_max", *most as f64, None)?;
    Ok(())
}

fn latencies(figures: &Figures, reporter: &Reporter) -> Result<(), Error> {
    let latency = &figures.latency;
    if latency.is_empty() {
        return Ok(());
    }
    distribution("latency_ns", latency, &figures.percentiles, reporter)?;
    let mut bounds = Vec::new();
    let mut intervals = serde_json::Map::new();
    for ((name, _), percentile) in PERCENTILES.iter().zip(&figures.percentiles) {
        let name = format!("latency_ns_{name}");
        let interval = serde_json::json!([percentile.low_ns, percentile.high_ns]);
        intervals.insert(name.clone(), interval);
        if percentile.is_censored {
            bounds.push(name);
        }
    }
    reporter.fact("latency_intervals", serde_json::Value::Object(intervals))?;
    reporter.fact("latency_lower_bounds", bounds)?;
    reporter.fact("steady_state", figures.steadiness.json())?;
    Ok(())
}

/// Open loop: times from sending, and how late was sent.
fn sent_times(sent: &Sent, reporter: &Reporter) -> Result<(), Error> {
    distribution("service_ns", &sent.service, &sent.percentiles, reporter)?;
    for (name, share) in LAG_PERCENTILES {
        let ns = sent.lag_ns.value_at_quantile(share) as f64;
        reporter.indicator(&format!("lag_ns_{name}"), ns, Some("ns"))?;
    }
    histogram("service", None, sent.service.answered(), reporter)?;
    if !sent.service.unanswered().is_empty() {
        let ages = sent.service.unanswered();
        histogram("age since sending", None, ages, reporter)?;
    }
    histogram("lag", None, &sent.lag_ns, reporter)
}

/// The mean, the percentiles and the greatest value of some times.
fn distribution(
    name: &str,
    of: &Distribution,
    percentiles: &[Percentile],
    reporter: &Reporter,
) -> Result<(), Error> {
    reporter.indicator(&format!("{name}_mean"), of.mean().ns, Some("ns"))?;
    for ((share, _), percentile) in PERCENTILES.iter().zip(percentiles) {
        let ns = percentile.ns as f64;
        reporter.indicator(&format!("{name}_{share}"), ns, Some("ns"))?;
    }
    reporter.indicator(&format!("{name}_max"), of.max().ns, Some("ns"))?;
    Ok(())
}

fn histogram(
    name: &str,
    worker: Option<String>,
    of: &Histogram<u64>,
    reporter: &Reporter,
) -> Result<(), Error> {
    reporter.line(&ReportLine::Histogram(HistogramLine {
        histogram: name.to_owned(),
        unit: "ns".to_owned(),
        encoded: encode(of),
        worker,
    }))?;
    Ok(())
}
