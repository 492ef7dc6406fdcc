//! Counts of intervals, summed over all workers as they come, and shown while the run goes on: on the
//! terminal, in a log of histograms, and in one of requests.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use concurve_clock::monotonic_ns;

use super::hdr_log::HdrLog;
use super::progress::Progress;
use super::request_log::RequestLog;
use crate::counts::tally::Interval;
use crate::error::Error;
use crate::failures::Failures;
use crate::plan::{End, Plan, Task};

const INTERVAL_NS: u64 = 1_000_000_000;

/// Shows intervals while the run goes on.
pub struct IntervalObservers {
    sums: IntervalSums,
    log: Option<HdrLog>,
    requests: Option<RequestLog>,
    progress: Option<Progress>,
    /// The logs that could not be written: the load goes on, because its figures do not depend on them.
    failures: Failures,
}

impl IntervalObservers {
    /// Histograms are written to `log` and the times of requests to `requests`, if these are given.
    pub fn new(
        plan: &Plan,
        end: End,
        log: Option<&Path>,
        requests: Option<&Path>,
    ) -> Result<Self, Error> {
        let log = log.map(|path| HdrLog::create(path, plan, INTERVAL_NS));
        let requests = requests.map(|path| RequestLog::create(path, plan));
        Ok(Self {
            sums: IntervalSums::of(plan.workers()),
            log: log.transpose()?,
            requests: requests.transpose()?,
            progress: Progress::on_terminal(end, INTERVAL_NS),
            failures: Failures::default(),
        })
    }

    /// The interval at which workers report their counts; `None` if nothing is shown.
    pub fn interval_ns(&self) -> Option<u64> {
        let is_any = self.log.is_some() || self.requests.is_some() || self.progress.is_some();
        is_any.then_some(INTERVAL_NS)
    }

    /// Says on the terminal what goes on before the load.
    pub fn tell(&mut self, what: &str) {
        if let Some(progress) = &mut self.progress {
            progress.show(what);
        }
    }

    /// Before the first interval.
    pub fn begin(&mut self, task: &Task, server: &str) -> Result<(), Error> {
        if task.measure_ns() > task.begin_ns {
            self.tell("warming up");
        }
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        let ahead_ns = task.measure_ns().saturating_sub(monotonic_ns());
        let start = SystemTime::now() + Duration::from_nanos(ahead_ns);
        log.begin(start, server)
    }

    /// Takes the counts of a worker in an interval; `None` after its last one.
    pub fn observe(&mut self, worker: usize, part: Option<&Interval>) {
        if let (Some(log), Some(part)) = (&mut self.requests, part)
            && let Err(error) = log.requests(&part.requests)
        {
            self.failures.note(Err::<(), _>(error));
            self.requests = None;
        }
        let complete = match part {
            Some(part) => self.sums.add(worker, part),
            None => self.sums.end(worker),
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
            self.failures.note(Err::<(), _>(error));
            self.log = None;
        }
    }

    /// After the last interval; returns which logs could not be written, and why.
    pub fn end(mut self) -> Failures {
        let rest = std::mem::replace(&mut self.sums, IntervalSums::of(0));
        for interval in rest.rest() {
            self.show(&interval);
        }
        let mut failures = self.failures;
        failures.note(self.requests.map_or(Ok(()), RequestLog::end));
        failures.note(self.log.map_or(Ok(()), HdrLog::end));
        failures
    }
}

/// Sums intervals of the same number until every worker has reported its part.
#[derive(Debug)]
struct IntervalSums {
    /// The number of the last interval that each worker reported.
    last: Vec<Option<u64>>,
    open: BTreeMap<u64, Interval>,
}

impl IntervalSums {
    fn of(workers: u64) -> Self {
        Self {
            last: vec![None; workers as usize],
            open: BTreeMap::new(),
        }
    }

    /// Adds a worker's part; returns the intervals that are complete, in order.
    fn add(&mut self, worker: usize, part: &Interval) -> Vec<Interval> {
        self.last[worker] = Some(part.number);
        match self.open.get_mut(&part.number) {
            Some(sum) => sum.add(part),
            None => {
                let part = Interval {
                    requests: Vec::new(),
                    ..part.clone()
                };
                self.open.insert(part.number, part);
            }
        }
        self.complete()
    }

    /// A worker reports no more; returns the intervals that are complete by that.
    fn end(&mut self, worker: usize) -> Vec<Interval> {
        self.last[worker] = Some(u64::MAX);
        self.complete()
    }

    fn complete(&mut self) -> Vec<Interval> {
        // Each worker reports its intervals in order.
        let Some(complete) = self.last.iter().copied().min().flatten() else {
            return Vec::new();
        };
        let rest = match complete.checked_add(1) {
            Some(next) => self.open.split_off(&next),
            None => BTreeMap::new(),
        };
        let done = std::mem::replace(&mut self.open, rest);
        done.into_values().collect()
    }

    /// What is left when all have ended.
    fn rest(self) -> Vec<Interval> {
        self.open.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::tally::Tally;
    use crate::workload::Ending;

    fn part(number: u64) -> Interval {
        let mut tally = Tally::new(1, 1);
        tally.end(0, 0, 1_000, Ending::Ok);
        tally.take_interval(number)
    }

    fn counts(intervals: &[Interval]) -> Vec<(u64, u64)> {
        let count = |it: &Interval| (it.number, it.kinds[0].ok);
        intervals.iter().map(count).collect()
    }

    #[test]
    fn an_interval_is_complete_when_all_have_reported_it_or_a_later_one() {
        let mut sums = IntervalSums::of(2);
        assert_eq!(counts(&sums.add(0, &part(0))), []);
        assert_eq!(counts(&sums.add(0, &part(1))), []);
        assert_eq!(counts(&sums.add(1, &part(0))), [(0, 2)]);
        assert_eq!(counts(&sums.add(1, &part(2))), [(1, 1)]);
        assert_eq!(counts(&sums.add(0, &part(3))), [(2, 1)]);
        assert_eq!(counts(&sums.end(1)), [(3, 1)]);
        assert_eq!(counts(&sums.add(0, &part(4))), [(4, 1)]);
        assert_eq!(counts(&sums.rest()), []);
    }
}
