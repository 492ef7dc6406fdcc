//! The figures as JSON, with the names of the indicators in a record.

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::{Figures, PERCENTILES};
use crate::dataset::DatasetInDatabase;
use crate::plan::Plan;

/// All figures of a run.
pub fn figures(plan: &Plan, figures: &Figures) -> Value {
    let total = &figures.total;
    let kinds = plan.workload.kinds().iter().zip(&figures.all.kinds);
    let kinds = kinds.map(|(kind, tally)| {
        json!({
            "name": kind.name,
            "round_trips": kind.round_trips.len(),
            "operations": tally.ok + tally.refused,
            "refused": tally.refused,
            "errors": tally.failed(),
            "latency_ns": latency(&tally.latency_ns),
        })
    });
    let sessions = figures.all.sessions.iter().map(|it| it.transactions);
    json!({
        "server": plan.target_name(),
        "data": plan.dataset.as_ref().map(DatasetInDatabase::size),
        "sessions": plan.sessions,
        "loop": figures.pace,
        "pipeline": plan.pipeline,
        "wall_seconds": figures.wall_seconds,
        "rate_per_second": figures.rate_per_second,
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
        "latency_ns": latency(&total.latency_ns),
        "connection_ns": latency(&figures.all.connection_ns),
        "kinds": kinds.collect::<Vec<_>>(),
        "bytes_sent": figures.all.usage.bytes_sent,
        "bytes_received": figures.all.usage.bytes_received,
        "engine_waits": figures.all.usage.waits,
        "client_cpu_ns_per_operation": figures.client_cpu_ns_per_operation,
        "client_threads_busy_share_max": figures.busiest_thread_share,
        "concurrency_mean": figures.concurrency,
        "session_fairness": figures.fairness,
        "session_operations": sessions.collect::<Vec<_>>(),
        "warnings": figures.warnings,
    })
}

fn latency(histogram: &Histogram<u64>) -> Value {
    if histogram.is_empty() {
        return Value::Null;
    }
    let mut values = serde_json::Map::new();
    values.insert("mean".to_owned(), json!(histogram.mean()));
    for (name, percentile) in PERCENTILES {
        let value = histogram.value_at_percentile(percentile);
        values.insert(name.to_owned(), json!(value));
    }
    values.insert("max".to_owned(), json!(histogram.max()));
    Value::Object(values)
}
