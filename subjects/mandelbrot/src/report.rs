//! The lines of the kernel on the report channel.

use concurve_reporter::line::{Edge, PhaseLine, ReportLine};
use concurve_reporter::{Reporter, ReporterError};

use crate::workers::Computation;

const PHASE: &str = "measure";

/// Facts about the whole run.
pub(crate) fn facts(
    reporter: &Reporter,
    facts: Vec<(&'static str, serde_json::Value)>,
) -> Result<(), ReporterError> {
    facts
        .into_iter()
        .try_for_each(|(name, value)| reporter.fact(name, value))
}

/// A computation begins.
pub(crate) fn begin(reporter: &Reporter, begin_ns: u64) -> Result<(), ReporterError> {
    edge(reporter, Edge::Begin, begin_ns)
}

/// A computation has ended: its phase, its figures, and those of each worker.
pub(crate) fn end(reporter: &Reporter, computation: &Computation) -> Result<(), ReporterError> {
    edge(reporter, Edge::End, computation.end_ns)?;
    reporter.indicator("compute_seconds", computation.seconds(), Some("s"))?;
    reporter.indicator("operations", computation.pixels as f64, None)?;
    reporter.indicator("iterations_total", computation.pixel_sum as f64, None)?;
    reporter.fact("pixel_sum", computation.pixel_sum)?;
    for worker in &computation.workers {
        let (name, pixels) = (worker.name.as_str(), worker.pixels as f64);
        reporter.worker_indicator("worker_pixels", pixels, None, name)?;
        reporter.worker_indicator("worker_compute_seconds", worker.seconds(), Some("s"), name)?;
    }
    Ok(())
}

/// The edge as the kernel timed it: the last worker's end, not when the main thread woke up.
fn edge(reporter: &Reporter, edge: Edge, at_ns: u64) -> Result<(), ReporterError> {
    reporter.line(&ReportLine::Phase(PhaseLine {
        phase: PHASE.into(),
        edge,
        at_ns: Some(at_ns),
    }))
}
