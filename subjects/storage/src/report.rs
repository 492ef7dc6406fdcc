//! Outcomes → the report channel.

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

/// Tells all of them to the report channel.
pub fn tell(reporter: &Reporter, facts: &[Fact], figures: &[Figure]) -> Result<(), Error> {
    for (name, value) in facts {
        reporter.fact(name, value.as_str())?;
    }
    for &(name, value, unit) in figures {
        reporter.indicator(name, value, unit)?;
    }
    Ok(())
}

/// The times of all tables and savepoints, as histograms.
pub fn tell_times(reporter: &Reporter, outcome: &load::Outcome) -> Result<(), Error> {
    let histogram_of = |time: fn(&load::Loaded) -> Duration| {
        let mut times = streams::histogram();
        for it in outcome.tables() {
            times.saturating_record(time(it).as_nanos() as u64);
        }
        times
    };
    tell_histogram(reporter, "table", &histogram_of(|it| it.loading))?;
    tell_histogram(reporter, "savepoint", &histogram_of(|it| it.savepoint))
}

/// The times of all reads, as a histogram.
pub fn tell_reads(reporter: &Reporter, outcome: &streams::Outcome) -> Result<(), Error> {
    if outcome.read_times.is_empty() {
        return Ok(());
    }
    tell_histogram(reporter, "read", &outcome.read_times)
}

fn tell_histogram(
    reporter: &Reporter,
    name: &str,
    histogram: &Histogram<u64>,
) -> Result<(), Error> {
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(histogram, &mut bytes)
        .expect("a histogram in memory is written to memory");
    reporter.line(&ReportLine::Histogram(HistogramLine {
        histogram: name.to_owned(),
        unit: "ns".to_owned(),
        encoded: BASE64_STANDARD.encode(bytes),
        worker: None,
    }))?;
    Ok(())
}

/// How the work was shared by the loaders.
pub fn tell_loaders(reporter: &Reporter, outcome: &load::Outcome) -> Result<(), Error> {
    for (number, loader) in outcome.loaders.iter().enumerate() {
        let worker = format!("loader-{}", number + 1);
        let (tables, took) = (loader.tables.len() as f64, loader.took.as_secs_f64());
        reporter.worker_indicator("loader_tables", tables, None, &worker)?;
        reporter.worker_indicator("loader_seconds", took, Some("s"), &worker)?;
    }
    Ok(())
}
