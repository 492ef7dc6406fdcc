//! How a measured program in Rust writes to the report channel of its trial; [`line`] has the
//! lines. Any program may use this crate: it needs nothing of concurve but the clock, and it is
//! silent where no trial listens.
//!
//! ```no_run
//! use concurve_reporter::Reporter;
//!
//! # fn compute() {}
//! let reporter = Reporter::from_environment()?;
//! reporter.ready()?;
//! let begin_ns = reporter.begin("measure")?;
//! compute();
//! let end_ns = reporter.end("measure")?;
//! reporter.indicator("compute_seconds", (end_ns - begin_ns) as f64 / 1e9, Some("s"))?;
//! # Ok::<(), concurve_reporter::ReporterError>(())
//! ```

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use concurve_clock::monotonic_ns;
use thiserror::Error;

use crate::line::{Edge, FactLine, IndicatorLine, PhaseLine, ReadyLine, ReportLine};

pub mod line;

/// Name of the environment variable that holds the number of a role's report descriptor.
pub const REPORT_VARIABLE: &str = "CONCURVE_REPORT";

/// Name of the environment variable that holds the name of a role.
pub const ROLE_VARIABLE: &str = "CONCURVE_ROLE";

/// The name of this program's role, in a trial.
pub fn role() -> Option<String> {
    std::env::var(ROLE_VARIABLE).ok()
}

/// Why a report could not be written.
#[derive(Debug, Error)]
pub enum ReporterError {
    #[error(
        "{REPORT_VARIABLE}={value:?} is not the number of a descriptor: unset it, or run the program under concurve"
    )]
    NotADescriptor { value: String },
    #[error(
        "cannot open the report channel {path} (from {REPORT_VARIABLE}): {source}; unset the variable, or leave the descriptor open for writing"
    )]
    Open { path: String, source: io::Error },
    #[error("cannot write to the report channel: {0}")]
    Write(#[from] io::Error),
}

/// Writes report lines; silent where no channel was given.
///
/// A line goes out in a single `write`, so threads may share a reporter, and nothing is
/// buffered: what was reported before a crash has been reported.
#[derive(Debug)]
pub struct Reporter {
    channel: Option<File>,
}

impl Reporter {
    /// The channel named by `CONCURVE_REPORT`, or a silent reporter if the variable is unset.
    pub fn from_environment() -> Result<Self, ReporterError> {
        let channel = open_channel()?;
        Ok(Self { channel })
    }

    /// A reporter that writes nothing.
    pub fn silent() -> Self {
        Self { channel: None }
    }

    /// A reporter that appends to `channel`.
    pub fn to_file(channel: File) -> Self {
        Self {
            channel: Some(channel),
        }
    }

    /// Whether there is a channel; lets a program skip figures that are costly to prepare.
    pub fn is_connected(&self) -> bool {
        self.channel.is_some()
    }

    /// Reports that the program is ready.
    pub fn ready(&self) -> Result<(), ReporterError> {
        self.line(&ReportLine::Ready(ReadyLine { ready: true }))
    }

    /// Begins a phase now; returns the time of the edge on CLOCK_MONOTONIC.
    pub fn begin(&self, phase: &str) -> Result<u64, ReporterError> {
        self.edge(phase, Edge::Begin)
    }

    /// Ends a phase now; returns the time of the edge on CLOCK_MONOTONIC.
    pub fn end(&self, phase: &str) -> Result<u64, ReporterError> {
        self.edge(phase, Edge::End)
    }

    /// A figure of the whole program.
    pub fn indicator(
        &self,
        name: &str,
        value: f64,
        unit: Option<&str>,
    ) -> Result<(), ReporterError> {
        self.indicator_of(name, value, unit, None)
    }

    /// A figure of one worker.
    pub fn worker_indicator(
        &self,
        name: &str,
        value: f64,
        unit: Option<&str>,
        worker: &str,
    ) -> Result<(), ReporterError> {
        self.indicator_of(name, value, unit, Some(worker))
    }

    /// Something worth knowing about the program that is no indicator.
    pub fn fact(
        &self,
        name: &str,
        value: impl Into<serde_json::Value>,
    ) -> Result<(), ReporterError> {
        self.line(&ReportLine::Fact(FactLine {
            fact: name.to_owned(),
            value: value.into(),
        }))
    }

    /// Any line.
    pub fn line(&self, line: &ReportLine) -> Result<(), ReporterError> {
        let Some(mut channel) = self.channel.as_ref() else {
            return Ok(());
        };
        let mut text = serde_json::to_vec(line).map_err(io::Error::from)?;
        text.push(b'\n');
        channel.write_all(&text)?;
        Ok(())
    }

    fn edge(&self, phase: &str, edge: Edge) -> Result<u64, ReporterError> {
        let at_ns = monotonic_ns();
        self.line(&ReportLine::Phase(PhaseLine {
            phase: phase.to_owned(),
            edge,
            at_ns: Some(at_ns),
        }))?;
        Ok(at_ns)
    }

    fn indicator_of(
        &self,
        name: &str,
        value: f64,
        unit: Option<&str>,
        worker: Option<&str>,
    ) -> Result<(), ReporterError> {
        self.line(&ReportLine::Indicator(IndicatorLine {
            indicator: name.to_owned(),
            value,
            unit: unit.map(str::to_owned),
            worker: worker.map(str::to_owned),
        }))
    }
}

/// Opens the channel that `CONCURVE_REPORT` names; `None` if the variable is unset.
///
/// The pipe is opened anew through `/proc/self/fd`: with a wrong number that is an error, instead of a
/// write into another file.
pub fn open_channel() -> Result<Option<File>, ReporterError> {
    let Some(value) = std::env::var_os(REPORT_VARIABLE) else {
        return Ok(None);
    };
    let value = value.to_string_lossy();
    let descriptor: u32 = value.parse().map_err(|_| ReporterError::NotADescriptor {
        value: value.clone().into_owned(),
    })?;
    let path = format!("/proc/self/fd/{descriptor}");
    match OpenOptions::new().append(true).open(&path) {
        Ok(channel) => Ok(Some(channel)),
        Err(source) => Err(ReporterError::Open { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use serde_json::Value;

    use super::*;

    /// As `schema/golden` has them.
    #[test]
    fn golden_lines_come_out_as_they_went_in() {
        let text = include_str!("../../../schema/golden/report-lines-1.jsonl");
        assert!(text.lines().count() > 0);
        for line in text.lines() {
            let report: ReportLine = serde_json::from_str(line).unwrap();
            let expected: Value = serde_json::from_str(line).unwrap();
            assert_eq!(serde_json::to_value(&report).unwrap(), expected);
        }
    }

    #[test]
    fn each_call_writes_one_line_that_parses_as_its_kind() {
        let (reader, writer) = nix::unistd::pipe().expect("a pipe");
        let reporter = Reporter::to_file(File::from(writer));
        reporter.ready().unwrap();
        let begin_ns = reporter.begin("measure").unwrap();
        let end_ns = reporter.end("measure").unwrap();
        reporter.indicator("operations", 12.0, None).unwrap();
        reporter
            .worker_indicator("worker_operations", 6.0, None, "worker-1")
            .unwrap();
        reporter.fact("kernel", "scalar").unwrap();
        drop(reporter);

        let mut text = String::new();
        File::from(reader).read_to_string(&mut text).unwrap();
        let lines: Vec<ReportLine> = text
            .lines()
            .map(|line| serde_json::from_str(line).expect(line))
            .collect();
        assert!(end_ns >= begin_ns);
        assert!(matches!(lines[0], ReportLine::Ready(_)));
        assert!(
            matches!(&lines[1], ReportLine::Phase(p) if p.edge == Edge::Begin && p.at_ns == Some(begin_ns))
        );
        assert!(
            matches!(&lines[2], ReportLine::Phase(p) if p.edge == Edge::End && p.at_ns == Some(end_ns))
        );
        assert!(
            matches!(&lines[3], ReportLine::Indicator(i) if i.value == 12.0 && i.worker.is_none())
        );
        assert!(
            matches!(&lines[4], ReportLine::Indicator(i) if i.worker.as_deref() == Some("worker-1"))
        );
        assert!(matches!(&lines[5], ReportLine::Fact(f) if f.value == "scalar"));
        assert_eq!(lines.len(), 6);
    }

    #[test]
    fn a_silent_reporter_still_tells_the_time() {
        let reporter = Reporter::silent();
        assert!(!reporter.is_connected());
        assert!(reporter.begin("measure").unwrap() > 0);
    }
}
