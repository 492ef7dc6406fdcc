//! The figures as JSON, with the names of the indicators in a record.

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::distribution::{Distribution, Percentile};
use super::{Figures, PERCENTILES, percentiles, text};
use crate::dataset::{DatasetInDatabase, Verified};
use crate::plan::Plan;

/// All figures of a run, with what was found in the data if that was verified and holds.
pub fn figures(plan: &Plan, figures: &Figures, verified: Option<&Verified>) -> Value {
    let total = &figures.total;
    let kinds = plan.workload.kinds().iter().zip(&figures.all.kinds);
    let kinds = kinds.zip(&figures.kinds).map(|((kind, tally), latencies)| {
        json!({
            "name": kind.name,
            "round_trips": kind.round_trips.len(),
            "operations": tally.ok + tally.refused,
            "refused": tally.refused,
            "errors": tally.failed(),
            "latency_ns": latency(latencies, &percentiles(latencies, None)),
        })
    });
    let sessions = figures.all.sessions.iter().map(|it| it.transactions);
    let measured = figures.all.measured_ns();
    let mut all = json!({
        "server": plan.target_name(),
        "data": plan.dataset.as_ref().map(DatasetInDatabase::size),
        "sessions": plan.sessions,
        "loop": figures.pace,
        "pipeline": plan.pipeline,
        "spin_ns": plan.spin_ns,
        "wall_seconds": figures.wall_seconds,
        "rate_per_second": figures.rate_per_second,
        "measured_from_ns": measured.map(|it| it.0),
        "measured_to_ns": measured.map(|it| it.1),
        "due": figures.due,
        "answered": total.answered(),
        "unanswered": figures.unanswered,
        "transactions_lost": figures.all.transactions_lost,
        "operations": total.ok + total.refused,
        "refused": total.refused,
        "errors": total.failed(),
        "errors_by_kind": total.errors,
        "acknowledged": figures.all.acknowledged,
        "in_doubt": figures.all.in_doubt,
        "sessions_lost": figures.sessions_lost,
        "sessions_lost_by_reason": figures.all.lost,
        "not_begun": figures.all.not_begun,
        "late": figures.all.late,
        "skipped": figures.all.skipped,
        "lag_ns_max": figures.all.lag_ns_max,
        "latency_ns": latency(&figures.latency, &figures.percentiles),
        "steady_state": figures.steadiness.json(),
        "connection_ns": times(&figures.all.connection_ns),
        "kinds": kinds.collect::<Vec<_>>(),
        "bytes_sent": figures.all.usage.bytes_sent,
        "bytes_received": figures.all.usage.bytes_received,
        "engine_waits": figures.all.usage.waits,
        "client_cpu_ns_per_operation": figures.client_cpu_ns_per_operation,
        "client_threads_busy_share_max": figures.busiest_thread_share,
        "concurrency_mean": figures.concurrency,
        "session_fairness": figures.fairness,
        "session_operations": sessions.collect::<Vec<_>>(),
        "checks_held": verified.map(|it| it.checks),
        "transactions_found": verified.and_then(|it| it.found),
        "warnings": figures.said(),
    });
    all["empty"] = json!(total.empty);
    all["p99"] = p99(plan, figures);
    for (name, value) in open_loop(figures) {
        all[name] = value;
    }
    all
}

/// What is to be reported as the 99th percentile of an open loop, and what makes most of it; null in a
/// closed loop.
pub fn p99(plan: &Plan, figures: &Figures) -> Value {
    let said = |of| {
        json!({
            "mostly": of,
            "in_doubt": !figures.doubts.is_empty(),
            "text": text::p99(of, figures),
        })
    };
    figures.of_p99(plan).map_or(Value::Null, said)
}

/// What an open loop alone has; null in a closed loop.
fn open_loop(figures: &Figures) -> [(&'static str, Value); 6] {
    let rate = figures.rate_asked();
    let greatest = figures.greatest.as_ref();
    let sent = figures.sent.as_ref();
    let service = sent.map(|it| latency(&it.service, &it.percentiles));
    [
        ("rate_asked_per_second", json!(rate.map(|it| it.0))),
        ("rate_asked_share", json!(rate.map(|it| it.1))),
        (
            "closed_rate_per_second",
            json!(greatest.map(|it| it.rate_per_second)),
        ),
        (
            "rate_asked_of_closed_rate",
            json!(greatest.map(|it| it.share)),
        ),
        ("service_ns", json!(service)),
        ("lag_ns", json!(sent.map(|it| times(&it.lag_ns)))),
    ]
}

/// What was found in data that holds.
pub fn verified(verified: &Verified) -> Value {
    json!({
        "checks_held": verified.checks,
        "transactions_found": verified.found,
    })
}

/// Latencies: mean, percentiles and maximum as numbers, which are lower bounds where `intervals` says
/// that they are censored.
fn latency(of: &Distribution, percentiles: &[Percentile]) -> Value {
    if of.is_empty() {
        return Value::Null;
    }
    let (mean, max) = (of.mean(), of.max());
    let mut values = serde_json::Map::new();
    let mut intervals = serde_json::Map::new();
    values.insert("mean".to_owned(), json!(mean.ns));
    intervals.insert("mean".to_owned(), json!({"censored": mean.is_censored}));
    for ((name, _), percentile) in PERCENTILES.iter().zip(percentiles) {
        values.insert((*name).to_owned(), json!(percentile.ns));
        let interval = json!({
            "low": percentile.low_ns,
            "high": percentile.high_ns,
            "censored": percentile.is_censored,
        });
        intervals.insert((*name).to_owned(), interval);
    }
    values.insert("max".to_owned(), json!(max.ns as u64));
    intervals.insert("max".to_owned(), json!({"censored": max.is_censored}));
    values.insert("intervals".to_owned(), Value::Object(intervals));
    Value::Object(values)
}

/// Times of which all are known.
fn times(histogram: &Histogram<u64>) -> Value {
    if histogram.is_empty() {
        return Value::Null;
    }
    let mut values = serde_json::Map::new();
    values.insert("mean".to_owned(), json!(histogram.mean()));
    for (name, share) in PERCENTILES {
        values.insert(name.to_owned(), json!(histogram.value_at_quantile(share)));
    }
    values.insert("max".to_owned(), json!(histogram.max()));
    Value::Object(values)
}
