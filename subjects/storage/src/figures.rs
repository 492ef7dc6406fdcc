//! Figures and facts of results.

use std::time::Duration;

use crate::device::{Device, Interval, Seeks};
use crate::export::Manifest;
use crate::{load, streams};

/// The name of a figure, its value, and its unit on the wire.
pub type Figure = (&'static str, f64, Option<&'static str>);

/// The name of a fact on the wire, and its text.
pub type Fact = (&'static str, String);

/// The figures of a load.
pub fn of_load(manifest: &Manifest, outcome: &load::Outcome) -> Vec<Figure> {
    let loading: Vec<Duration> = outcome.tables().map(|it| it.loading).collect();
    let savepoints: Vec<Duration> = outcome.tables().map(|it| it.savepoint).collect();
    let seconds = Some("s");
    let mut figures = vec![
        ("operations", loading.len() as f64, None),
        ("load_seconds", outcome.whole.as_secs_f64(), seconds),
        ("loading_seconds", outcome.loading.as_secs_f64(), seconds),
        (
            "closing_seconds",
            (outcome.whole - outcome.loading).as_secs_f64(),
            seconds,
        ),
        ("rows", manifest.rows() as f64, None),
        ("export_bytes", manifest.bytes() as f64, Some("B")),
    ];
    let table = spread(&loading);
    let savepoint = spread(&savepoints);
    figures.extend([
        ("table_seconds_mean", table.mean, seconds),
        ("table_seconds_p50", table.median, seconds),
        ("table_seconds_max", table.max, seconds),
        ("savepoint_seconds_mean", savepoint.mean, seconds),
        ("savepoint_seconds_p50", savepoint.median, seconds),
        ("savepoint_seconds_max", savepoint.max, seconds),
    ]);
    figures
}

/// The figures of streams.
pub fn of_streams(streams: &streams::Streams, outcome: &streams::Outcome) -> Vec<Figure> {
    let seconds = outcome.took.as_secs_f64();
    let writes: u64 = outcome.writes.iter().sum();
    let reads: u64 = outcome.reads.iter().sum();
    let mut figures = vec![("operations", (reads + writes) as f64, None)];
    if streams.writers > 0 {
        let bytes = writes as f64 * streams.write_bytes as f64;
        figures.push(("writes_per_second", writes as f64 / seconds, Some("1/s")));
        figures.push(("write_bytes_per_second", bytes / seconds, Some("B/s")));
    }
    if streams.readers > 0 {
        figures.push(("reads_per_second", reads as f64 / seconds, Some("1/s")));
    }
    if reads > 0 {
        let times = &outcome.read_times;
        let ms = |ns: u64| ns as f64 / 1e6;
        figures.extend([
            ("read_ms_mean", times.mean() / 1e6, Some("ms")),
            ("read_ms_p50", ms(times.value_at_quantile(0.5)), Some("ms")),
            ("read_ms_p99", ms(times.value_at_quantile(0.99)), Some("ms")),
            ("read_ms_max", ms(times.max()), Some("ms")),
        ]);
    }
    figures
}

/// The figures of the device, as the kernel counts them.
pub fn of_device(interval: &Interval) -> Vec<Figure> {
    let counted = &interval.counted;
    let (seconds, took_ms) = (
        interval.took.as_secs_f64(),
        interval.took.as_secs_f64() * 1e3,
    );
    let mut figures = vec![
        ("device_read_bytes", counted.read_bytes as f64, Some("B")),
        ("device_write_bytes", counted.write_bytes as f64, Some("B")),
        ("device_reads", counted.reads as f64, None),
        ("device_writes", counted.writes as f64, None),
        (
            "device_merges",
            (counted.read_merges + counted.write_merges) as f64,
            None,
        ),
        ("device_flushes", counted.flushes as f64, None),
        (
            "device_queue_depth",
            counted.queue_ms as f64 / took_ms,
            None,
        ),
        // The kernel counts in ticks, so the sum may exceed the elapsed time a little.
        (
            "device_busy_share",
            (counted.busy_ms as f64 / took_ms).min(1.0),
            None,
        ),
    ];
    // Without requests there is no mean: it is absent, not 0.
    if counted.reads > 0 {
        let mean = counted.read_ms as f64 / counted.reads as f64;
        figures.push(("device_read_ms_mean", mean, Some("ms")));
    }
    if counted.writes > 0 {
        let mean = counted.write_ms as f64 / counted.writes as f64;
        figures.push(("device_write_ms_mean", mean, Some("ms")));
    }
    if let Some((some, full)) = interval.pressure {
        figures.push(("io_pressure_some_share", some.as_secs_f64() / seconds, None));
        figures.push(("io_pressure_full_share", full.as_secs_f64() / seconds, None));
    }
    figures
}

/// The facts of the device.
pub fn facts_of_device(device: Option<&Device>, seeks: Option<Seeks>) -> Vec<Fact> {
    let scheduler = device.and_then(Device::scheduler);
    let facts = [
        ("device", device.map(|it| it.name.clone())),
        ("scheduler", scheduler),
        ("seeks", seeks.map(|it| it.fact().to_owned())),
    ];
    let known = facts.into_iter().filter_map(|(name, it)| Some((name, it?)));
    known.collect()
}

struct Spread {
    mean: f64,
    median: f64,
    max: f64,
}

/// The spread of at least one time: an export set has 34 tables or more.
fn spread(times: &[Duration]) -> Spread {
    let mut seconds: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
    seconds.sort_by(f64::total_cmp);
    let count = seconds.len();
    Spread {
        mean: seconds.iter().sum::<f64>() / count as f64,
        median: (seconds[(count - 1) / 2] + seconds[count / 2]) / 2.0,
        max: seconds[count - 1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_covers_all_times() {
        let found = spread(&[3, 1, 2, 10].map(Duration::from_secs));
        assert_eq!((found.mean, found.median, found.max), (4.0, 2.5, 10.0));
        let one = spread(&[Duration::from_secs(7)]);
        assert_eq!((one.mean, one.median, one.max), (7.0, 7.0, 7.0));
    }
}
