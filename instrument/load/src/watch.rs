//! Who follows a run while it goes on: the line on the terminal, and the log of histograms.

use std::path::Path;
use std::time::SystemTime;

use concurve_clock::monotonic_ns;

use crate::error::Error;
use crate::hdr_log::HdrLog;
use crate::intervals::Intervals;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::tally::Interval;
use crate::task::Task;

const INTERVAL_NS: u64 = 1_000_000_000;

/// Both followers, or one, or none.
pub struct Watch {
    intervals: Intervals,
    log: Option<HdrLog>,
    pub progress: Option<Progress>,
    error: Option<Error>,
}

impl Watch {
    /// A log is written to `log`, if that is given.
    pub fn new(plan: &Plan, log: Option<&Path>) -> Result<Self, Error> {
        let log = log.map(|path| HdrLog::create(path, plan, INTERVAL_NS));
        Ok(Self {
            intervals: Intervals::of(plan.members()),
            log: log.transpose()?,
            progress: Progress::on_terminal(plan, INTERVAL_NS),
            error: None,
        })
    }

    /// The interval at which threads are to tell their counts; none if nobody follows.
    pub fn interval_ns(&self) -> Option<u64> {
        (self.log.is_some() || self.progress.is_some()).then_some(INTERVAL_NS)
    }

    /// Before the first interval.
    pub fn begin(&mut self, task: &Task, server: &str) -> Result<(), Error> {
        if let Some(progress) = &mut self.progress
            && task.measure_ns() > task.begin_ns
        {
            progress.note("warming up");
        }
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        let ahead_ns = task.measure_ns().saturating_sub(monotonic_ns());
        let start = SystemTime::now() + std::time::Duration::from_nanos(ahead_ns);
        log.begin(start, server)
    }

    /// A thread has told its counts of an interval, or that it tells no more.
    pub fn hear(&mut self, member: usize, part: Option<&Interval>) {
        let complete = match part {
            Some(part) => self.intervals.add(member, part),
            None => self.intervals.end(member),
        };
        for interval in complete {
            self.show(&interval);
        }
    }

    fn show(&mut self, interval: &Interval) {
        if let Some(progress) = &mut self.progress {
            progress.interval(interval);
        }
        if let Some(log) = &mut self.log
            && let Err(error) = log.interval(interval)
        {
            // The load goes on: what it measures is still good.
            self.error.get_or_insert(error);
        }
    }

    /// After the last interval.
    ///
    /// # Errors
    /// The log could not be written.
    pub fn end(mut self) -> Result<(), Error> {
        let rest = std::mem::replace(&mut self.intervals, Intervals::of(0));
        for interval in rest.rest() {
            self.show(&interval);
        }
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.log.take().map_or(Ok(()), HdrLog::end)
    }
}
