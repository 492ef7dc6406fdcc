//! Shows results: on the report channel of a trial, as text, and as CSV.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use concurve_reporter::Reporter;
use concurve_reporter::line::{HistogramLine, ReportLine};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};

use crate::error::Error;
use crate::figures::{Fact, Figure};
use crate::{load, streams};

/// Reports facts and figures.
pub fn report(reporter: &Reporter, facts: &[Fact], figures: &[Figure]) -> Result<(), Error> {
    for (name, value) in facts {
        reporter.fact(name, value.as_str())?;
    }
    for &(name, value, unit) in figures {
        reporter.indicator(name, value, unit)?;
    }
    Ok(())
}

/// Reports the times of all tables and savepoints, as histograms.
pub fn report_times(reporter: &Reporter, outcome: &load::Outcome) -> Result<(), Error> {
    let histogram_of = |time: fn(&load::Loaded) -> Duration| {
        let mut times = streams::histogram();
        for it in outcome.tables() {
            times.saturating_record(time(it).as_nanos() as u64);
        }
        times
    };
    report_histogram(reporter, "table", &histogram_of(|it| it.loading))?;
    report_histogram(reporter, "savepoint", &histogram_of(|it| it.savepoint))
}

/// Reports the times of all reads, as a histogram.
pub fn report_reads(reporter: &Reporter, outcome: &streams::Outcome) -> Result<(), Error> {
    if outcome.read_times.is_empty() {
        return Ok(());
    }
    report_histogram(reporter, "read", &outcome.read_times)
}

fn report_histogram(
    reporter: &Reporter,
    name: &str,
    histogram: &Histogram<u64>,
) -> Result<(), Error> {
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(histogram, &mut bytes)
        .expect("a histogram can be written to memory");
    reporter.line(&ReportLine::Histogram(HistogramLine {
        histogram: name.to_owned(),
        unit: "ns".to_owned(),
        encoded: BASE64_STANDARD.encode(bytes),
        worker: None,
    }))?;
    Ok(())
}

/// Reports the number of tables and the time of each loader.
pub fn report_loaders(reporter: &Reporter, outcome: &load::Outcome) -> Result<(), Error> {
    for (number, loader) in outcome.loaders.iter().enumerate() {
        let worker = format!("loader-{}", number + 1);
        let (tables, took) = (loader.tables.len() as f64, loader.took.as_secs_f64());
        reporter.worker_indicator("loader_tables", tables, None, &worker)?;
        reporter.worker_indicator("loader_seconds", took, Some("s"), &worker)?;
    }
    Ok(())
}

/// The facts and figures as text, a line each.
pub fn lines(facts: &[Fact], figures: &[Figure]) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        writeln!(text, "{name:<26}{value}").expect("a string takes all");
    };
    for (name, value) in facts {
        line(name, value);
    }
    for &(name, value, unit) in figures {
        let value = match value {
            value if value.fract() == 0.0 => format!("{value:.0}"),
            value => format!("{value:.4}"),
        };
        line(name, format!("{value} {}", unit.unwrap_or("")).trim_end());
    }
    text
}

/// Writes the times of each table as CSV.
pub fn write_times(path: &Path, outcome: &load::Outcome) -> Result<(), Error> {
    let mut text = "table,loader,rows,loading_seconds,savepoint_seconds\n".to_owned();
    for (number, loader) in (1..).zip(&outcome.loaders) {
        for it in &loader.tables {
            let (loading, savepoint) = (it.loading.as_secs_f64(), it.savepoint.as_secs_f64());
            let (table, rows) = (&it.table, it.content.rows);
            let line = format!("{table},{number},{rows},{loading:.6},{savepoint:.6}\n");
            text.push_str(&line);
        }
    }
    concurve_files::write(path, text).map_err(Error::io("write the times to", path))
}
