//! All workers of a run: they get the same tasks, and each reports what it counted.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use concurve_clock::monotonic_ns;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::recorder::WorkerMessage;
use super::worker::{OpenTarget, Worker};
use crate::counts::tally::{Interval, Tally};
use crate::error::Error;
use crate::plan::{Plan, Runners, Target, Task};
use crate::stop::Stop;

/// Interval at which the main thread checks whether to stop while no messages come.
const STOP_CHECK: Duration = Duration::from_millis(200);

/// All workers, with their sessions connected.
pub struct Workers {
    workers: Vec<Worker>,
    messages: Receiver<(usize, WorkerMessage)>,
    stop: Stop,
    target: OpenTarget,
    results: TaskResults,
}

impl Workers {
    /// Starts all of them and waits until every session is connected.
    pub fn connect(plan: &Arc<Plan>, stop: &Stop) -> Result<Self, Error> {
        // Worker processes open an engine themselves; opening it here shows whether they can.
        let target = OpenTarget::open(plan)?;
        let (sender, messages) = channel();
        let mut all = Self {
            workers: Vec::new(),
            messages,
            stop: stop.clone(),
            target,
            results: TaskResults::default(),
        };
        for number in 0..plan.workers() {
            let worker = Worker::start(plan, number, stop, &all.target, sender.clone())?;
            all.workers.push(worker);
        }
        for _ in 0..all.workers.len() {
            if let (_, WorkerMessage::Failed(error)) = all.receive()? {
                // A process that was dismissed ends as if it had failed.
                return Err(match stop.signal() {
                    Some(_) => Error::Stopped,
                    None => error,
                });
            }
            if all.stop.is_set() {
                return Err(Error::Stopped);
            }
        }
        Ok(all)
    }

    /// Gives all of them their next task.
    pub fn begin(&mut self, task: &Task) -> Result<(), Error> {
        self.results = TaskResults::of(self.workers.len());
        for (number, worker) in self.workers.iter_mut().enumerate() {
            if !worker.give(task) {
                return Err(self.why_ended(number));
            }
        }
        Ok(())
    }

    /// Receives messages until a time on CLOCK_MONOTONIC, or until all have ended the task. `observe`
    /// is called with each interval of a worker, and with `None` after its last one.
    pub fn receive_until(
        &mut self,
        at_ns: u64,
        observe: &mut dyn FnMut(usize, Option<&Interval>),
    ) -> Result<(), Error> {
        while !self.has_ended() {
            let Some((number, message)) = self.receive_by(at_ns)? else {
                return Ok(());
            };
            self.results.take(number, message, observe)?;
        }
        Ok(())
    }

    /// Whether all have ended the task.
    pub fn has_ended(&self) -> bool {
        self.results.ended == self.workers.len()
    }

    /// Waits until all have ended the task; returns the counts of each.
    pub fn finish(
        &mut self,
        observe: &mut dyn FnMut(usize, Option<&Interval>),
    ) -> Result<Vec<Tally>, Error> {
        self.receive_until(u64::MAX, observe)?;
        let results = std::mem::take(&mut self.results);
        Ok(results.tallies.into_iter().flatten().collect())
    }

    /// Ends all workers, and waits for them.
    ///
    /// # Errors
    /// An engine cannot be closed: committed transactions may not be on the disk.
    pub fn end(self) -> Result<(), Error> {
        self.workers.into_iter().for_each(Worker::end);
        self.target.close()
    }

    fn receive(&mut self) -> Result<(usize, WorkerMessage), Error> {
        let message = self.receive_by(u64::MAX)?;
        Ok(message.expect("this deadline does not pass"))
    }

    /// The next message; `None` if none comes before a time.
    fn receive_by(&mut self, at_ns: u64) -> Result<Option<(usize, WorkerMessage)>, Error> {
        loop {
            let left = Duration::from_nanos(at_ns.saturating_sub(monotonic_ns()));
            match self.messages.recv_timeout(left.min(STOP_CHECK)) {
                Ok(message) => return Ok(Some(message)),
                Err(RecvTimeoutError::Disconnected) => return Err(Error::ThreadFailed),
                Err(RecvTimeoutError::Timeout) if left <= STOP_CHECK => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {
                    if self.stop.is_set() {
                        self.workers.iter_mut().for_each(Worker::dismiss);
                    }
                }
            }
        }
    }

    /// The error of a worker that has ended before its time.
    fn why_ended(&mut self, number: usize) -> Error {
        loop {
            match self.receive() {
                Ok((_, WorkerMessage::Failed(error))) | Err(error) => return error,
                Ok((worker, WorkerMessage::Ended(_))) if worker == number => {
                    return Error::ThreadFailed;
                }
                Ok(_) => {}
            }
        }
    }
}

/// What the workers have reported of the current task.
#[derive(Default)]
struct TaskResults {
    /// The counts of each worker that has ended the task.
    tallies: Vec<Option<Tally>>,
    /// The sum of the intervals that each worker has reported.
    intervals: Vec<Option<Interval>>,
    ended: usize,
}

impl TaskResults {
    fn of(workers: usize) -> Self {
        Self {
            tallies: (0..workers).map(|_| None).collect(),
            intervals: (0..workers).map(|_| None).collect(),
            ended: 0,
        }
    }

    fn take(
        &mut self,
        number: usize,
        message: WorkerMessage,
        observe: &mut dyn FnMut(usize, Option<&Interval>),
    ) -> Result<(), Error> {
        match message {
            WorkerMessage::Ready => {}
            WorkerMessage::Interval(mut interval) => {
                observe(number, Some(&interval));
                interval.requests = Vec::new();
                match &mut self.intervals[number] {
                    Some(sum) => sum.add(&interval),
                    first => *first = Some(interval),
                }
            }
            WorkerMessage::Ended(mut tally) => {
                if let Some(interval) = &self.intervals[number] {
                    tally.add_interval(interval);
                }
                observe(number, None);
                self.tallies[number] = Some(*tally);
                self.ended += 1;
            }
            // A process that was dismissed has ended.
            WorkerMessage::Failed(Error::ProcessFailed(_)) if self.tallies[number].is_some() => {}
            WorkerMessage::Failed(error) => return Err(error),
        }
        Ok(())
    }
}

/// Descriptors beside those of the sessions: standard streams, event queues, pipes, files.
const OTHER_FILES: u64 = 32;
/// Descriptors of a session of an engine: the data, a log, a file that sessions share.
const ENGINE_FILES: u64 = 4;

/// Raises the limit of open files to what the plan needs, and the loads that follow this one.
///
/// # Errors
/// More are needed than this process may ever open.
pub fn raise_open_file_limit(plan: &Plan, followers: u64) -> Result<(), Error> {
    let needed = OTHER_FILES
        + followers
        + match (plan.runners, &plan.target) {
            (Runners::Threads(threads), Target::Server(_)) => plan.sessions + threads,
            (Runners::Threads(_), Target::Engine(_)) => ENGINE_FILES * plan.sessions,
            // Two pipes to each child.
            (Runners::Processes, _) => 2 * plan.sessions,
        };
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return Ok(());
    };
    if needed <= soft {
        return Ok(());
    }
    if needed > hard || setrlimit(Resource::RLIMIT_NOFILE, needed, hard).is_err() {
        return Err(Error::Usage(format!(
            "{} sessions need {needed} open files, and this process may open {hard}: raise the limit (ulimit -Hn), or take fewer --sessions",
            plan.sessions
        )));
    }
    Ok(())
}
