//! Latencies as an HdrHistogram interval log (format of `HistogramLogWriter` 1.3, histograms in
//! the compressed V2 encoding): read by HistogramLogProcessor, HistogramLogAnalyzer, hdrh, ….

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

use crate::counts::tally::Interval;
use crate::error::Error;

use crate::plan::Plan;

/// The log has maxima in milliseconds; histograms hold nanoseconds.
const NS_PER_MAX_UNIT: f64 = 1e6;

/// A log that is being written.
pub struct HdrLog {
    path: PathBuf,
    file: BufWriter<File>,
    kinds: Vec<String>,
    interval_seconds: f64,
}

impl HdrLog {
    /// Creates the file, before anything is measured.
    pub fn create(path: &Path, plan: &Plan, interval_ns: u64) -> Result<Self, Error> {
        let file =
            concurve_files::create(path).map_err(|error| Error::HdrLog(path.to_owned(), error))?;
        let kinds = plan.workload.kinds();
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::new(file),
            kinds: kinds.iter().map(|kind| kind.name.clone()).collect(),
            interval_seconds: interval_ns as f64 / 1e9,
        })
    }

    /// Writes the header; `start` is when measuring began.
    pub fn begin(&mut self, start: SystemTime, server: &str) -> Result<(), Error> {
        let since = start.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = since.as_secs_f64();
        let text = format!(
            "#[Logged by concurve-load; latencies at {server} in nanoseconds]\n\
             #[Histogram log format version 1.3]\n\
             #[StartTime: {seconds:.3} (seconds since epoch)]\n\
             \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
        );
        self.write(&text)
    }

    /// Writes a line for all kinds together, and a tagged one for each kind if there are several.
    pub fn interval(&mut self, interval: &Interval) -> Result<(), Error> {
        let mut all = interval.kinds[0].latency_ns.clone();
        for kind in &interval.kinds[1..] {
            all += &kind.latency_ns;
        }
        self.line(interval.number, "", &all)?;
        if interval.kinds.len() > 1 {
            for index in 0..interval.kinds.len() {
                let tag = format!("Tag={},", self.kinds[index]);
                self.line(interval.number, &tag, &interval.kinds[index].latency_ns)?;
            }
        }
        Ok(())
    }

    fn line(&mut self, number: u64, tag: &str, histogram: &Histogram<u64>) -> Result<(), Error> {
        let length = self.interval_seconds;
        let start = number as f64 * length;
        let max = histogram.max() as f64 / NS_PER_MAX_UNIT;
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(histogram, &mut bytes)
            .expect("writing to memory does not fail");
        let encoded = BASE64_STANDARD.encode(bytes);
        self.write(&format!("{tag}{start:.3},{length:.3},{max:.3},{encoded}\n"))
    }

    fn write(&mut self, text: &str) -> Result<(), Error> {
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|error| Error::HdrLog(self.path.clone(), error))
    }

    /// Flushes the file.
    pub fn end(mut self) -> Result<(), Error> {
        let flushed = self.file.flush();
        flushed.map_err(|error| Error::HdrLog(self.path.clone(), error))
    }
}
