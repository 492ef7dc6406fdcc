//! The wait for the next request of a process: when it pays, and when it ends.

use super::Anticipatory;
use crate::request::{ProcessId, Request};
use crate::scheduler::Decision;
use crate::time::{MILLISECOND, Time};

/// Whether the disk waits, and what for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anticipation {
    Off,
    /// For the end of the request that was sent last.
    AwaitingEnd,
    /// For the next request of its process.
    AwaitingNext,
    /// Waited in vain, or not: the next request goes, whosever it is.
    Finished,
}

impl Anticipatory {
    /// The end of the wait, once it is known.
    fn wait_end(&self) -> Option<Time> {
        self.idle_since.map(|it| it + self.settings.antic_expire)
    }

    pub(super) fn end_wait_in_time(&mut self, now: Time) {
        if self.anticipation == Anticipation::AwaitingNext
            && self.wait_end().is_some_and(|it| it <= now)
        {
            self.anticipation = Anticipation::Finished;
        }
    }

    /// Is there nothing better to expect than `candidate`?
    pub(super) fn take_it(&mut self, candidate: Option<Request>, now: Time) -> bool {
        let Some(process) = self.awaited else {
            return true;
        };
        if candidate.is_some_and(|it| it.process == process)
            || self.wait_end().is_some_and(|it| it <= now)
        {
            return true;
        }
        if *self.habits.waiting(process) > 0 {
            return true;
        }
        if let Some(close) = candidate.filter(|it| it.sync && self.is_close(it, process, now)) {
            // Processes that work side by side share their habits.
            self.habits.learn(&close, process, now);
            return true;
        }
        let think_time = self.habits.think_time(process);
        think_time.is_some_and(|it| it > self.settings.antic_expire as f64)
    }

    /// Near the head: within 4 MiB, doubled with each ms of waiting, or nearer than the process
    /// that is waited for usually is.
    fn is_close(&mut self, request: &Request, process: ProcessId, now: Time) -> bool {
        let waited = match (self.anticipation, self.idle_since) {
            (Anticipation::Off, _) | (_, None) => 0,
            (_, Some(since)) => (now - since) / MILLISECOND,
        };
        let near = 8192u64 << waited.min(20);
        let head = self.sync.head;
        if head <= request.sector + near / 2 && request.sector <= head + near {
            return true;
        }
        let usual = self.habits.seek(process);
        usual.is_some_and(|it| it > head.abs_diff(request.sector) as f64)
    }

    pub(super) fn begin_to_wait(&mut self) -> Decision {
        self.anticipation = match self.idle_since {
            Some(_) => Anticipation::AwaitingNext,
            None => Anticipation::AwaitingEnd,
        };
        self.idle()
    }

    pub(super) fn idle(&self) -> Decision {
        self.wait_end()
            .map_or(Decision::Nothing, Decision::IdleUntil)
    }
}
