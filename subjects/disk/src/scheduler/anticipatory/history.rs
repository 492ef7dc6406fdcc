//! What processes are expected to do: their mean think times and seek distances.

use crate::request::{ProcessId, Request};
use crate::scheduler::per_process::PerProcess;
use crate::scheduler::per_process::{DecayingMean, ThinkTime};
use crate::time::Time;

/// The history of a process.
#[derive(Debug, Default)]
struct ProcessHistory {
    think_time: ThinkTime,
    seek: DecayingMean,
    last_end: Option<u64>,
    waiting: usize,
}

/// The histories of all processes.
#[derive(Debug)]
pub struct History {
    processes: PerProcess<ProcessHistory>,
    /// First think times and seeks of processes: the estimate for a process without a history.
    first_think_time: DecayingMean,
    first_seek: DecayingMean,
    /// Think times above it count as this.
    max_think_time: Time,
}

impl History {
    pub fn new(max_think_time: Time) -> Self {
        Self {
            processes: PerProcess::default(),
            first_think_time: DecayingMean::default(),
            first_seek: DecayingMean::default(),
            max_think_time,
        }
    }

    /// Number of waiting requests of a process.
    pub fn waiting(&mut self, process: ProcessId) -> &mut usize {
        &mut self.processes.of(process).waiting
    }

    /// Mean think time; the mean of other processes while its own is not known.
    pub fn think_time(&mut self, process: ProcessId) -> Option<f64> {
        let known = self.processes.of(process).think_time.mean();
        known.map(|it| it.1).or(self.first_think_time.mean())
    }

    /// Mean seek distance in sectors; the mean of other processes while its own is not known.
    pub fn seek(&mut self, process: ProcessId) -> Option<f64> {
        let known = self.processes.of(process).seek.mean();
        known.or(self.first_seek.mean())
    }

    /// A synchronous request of a process has ended.
    pub fn ended(&mut self, process: ProcessId, now: Time) {
        self.processes.of(process).think_time.ended(now);
    }

    /// Adds the think time and the seek distance of a synchronous request to a process's history.
    pub fn learn(&mut self, request: &Request, process: ProcessId, now: Time) {
        let history = self.processes.of(process);
        let is_new = history.think_time.mean().is_none();
        if history.waiting == 0
            && let Some(sample) = history.think_time.asked(now, self.max_think_time)
            && is_new
        {
            self.first_think_time.add(sample);
        }
        if let Some(end) = history.last_end {
            let usual = history.seek.mean().unwrap_or(0.0);
            let few = history.seek.weight() < 0.25;
            let odd = if few { 2048.0 } else { 128.0 } * 1024.0;
            let distance = (end.abs_diff(request.sector) as f64).min(4.0 * usual + odd);
            if history.seek.mean().is_none() {
                self.first_seek.add(distance);
            }
            history.seek.add(distance);
        }
        history.last_end = Some(request.end());
    }
}
