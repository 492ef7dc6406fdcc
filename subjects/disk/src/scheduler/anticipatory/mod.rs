//! **as**: deadline with anticipation. After a read it expects the same process to read again
//! nearby, and keeps the disk idle for up to `antic_expire` instead of seeking away at once.
//!
//! Synchronous requests (reads, and writes under `fsync`) and the others are served in alternating
//! batches, limited by time. Within a batch the nearest request goes next, mostly upwards. Within a
//! sync batch, after each request:
//!
//! - it waits for the request to end, so **one is under way at a time**;
//! - it then waits `antic_expire` at most for the next request of that process, unless the process
//!   thinks longer than that on average, has submitted already, or another request is close by.
//!
//! When the kind of batch changes, the old batch drains first. The number of writes of a batch is
//! tuned so that they take `write_batch_expire`.
//!
//! Left out: the statistics on processes that exit while the disk is kept idle for them.

mod batches;
mod history;

use super::request_queue::Elevator;
use super::request_queue::Slot;
use super::{Decision, MERGE_LIMIT, Merge, Scheduler};
use crate::request::{ProcessId, Request};
use crate::time::{MILLISECOND, Time, milliseconds};
use batches::{Batch, BatchQueue, Batches};
use history::History;

/// The tunables, by the names that the kernel gives them where it has them.
#[derive(Debug, Clone, Copy)]
pub struct AnticipatoryTunables {
    pub read_expire: Time,
    pub write_expire: Time,
    pub read_batch_expire: Time,
    pub write_batch_expire: Time,
    /// How long the disk may be kept idle for one process; 0: never, so that it behaves like deadline.
    pub antic_expire: Time,
    /// Think times above it count as this.
    pub max_think_time: Time,
    pub elevator: Elevator,
}

impl Default for AnticipatoryTunables {
    fn default() -> Self {
        Self {
            read_expire: 125 * MILLISECOND,
            write_expire: 250 * MILLISECOND,
            read_batch_expire: 500 * MILLISECOND,
            write_batch_expire: 125 * MILLISECOND,
            antic_expire: milliseconds(1000.0 / 150.0),
            max_think_time: 20 * MILLISECOND,
            elevator: Elevator {
                back_max: 1 << 20,
                back_penalty: 2,
            },
        }
    }
}

/// Whether the scheduler waits, and what for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anticipation {
    Off,
    /// For the end of the request that was sent last.
    AwaitingEnd,
    /// For the next request of its process.
    AwaitingNext,
    /// The wait is over: the next request goes, whichever process it belongs to.
    Finished,
}

#[derive(Debug)]
pub struct Anticipatory {
    tunables: AnticipatoryTunables,
    sync: BatchQueue,
    background: BatchQueue,
    history: History,
    batches: Batches,
    anticipation: Anticipation,
    awaited: Option<ProcessId>,
    /// Since when the disk has been kept idle for it; set when its request has ended.
    idle_since: Option<Time>,
    in_flight: usize,
}

impl Anticipatory {
    pub fn new(tunables: AnticipatoryTunables) -> Self {
        Self {
            sync: BatchQueue::new(tunables.read_expire),
            background: BatchQueue::new(tunables.write_expire),
            history: History::new(tunables.max_think_time),
            batches: Batches::new(tunables.read_batch_expire, tunables.write_batch_expire),
            anticipation: Anticipation::Off,
            awaited: None,
            idle_since: None,
            in_flight: 0,
            tunables,
        }
    }

    fn side(&mut self, batch: Batch) -> &mut BatchQueue {
        match batch {
            Batch::Sync => &mut self.sync,
            Batch::Async => &mut self.background,
        }
    }

    fn nearest(&self, batch: Batch) -> Option<Slot> {
        let side = match batch {
            Batch::Sync => &self.sync,
            Batch::Async => &self.background,
        };
        self.tunables.elevator.nearest(&side.requests, side.head)
    }

    /// Sends `slot` of the current batch, or the oldest if it has expired; nothing while the old batch
    /// drains.
    fn send(&mut self, slot: Slot, now: Time) -> Decision {
        let batch = self.batches.current;
        let slot = self.side(batch).oldest_expired(now).unwrap_or(slot);
        if self.batches.draining {
            if self.in_flight > 0 {
                return Decision::Nothing;
            }
            self.batches.drained(now);
        }
        self.serve(slot)
    }

    fn serve(&mut self, slot: Slot) -> Decision {
        let batch = self.batches.current;
        let side = self.side(batch);
        let request = side.requests.remove(slot);
        side.head = request.end();
        self.anticipation = Anticipation::Off;
        self.idle_since = None;
        match batch {
            Batch::Sync => self.awaited = Some(request.process),
            Batch::Async => {
                self.awaited = None;
                self.batches.count_write();
            }
        }
        *self.history.waiting(request.process) -= 1;
        self.in_flight += 1;
        Decision::Serve(request)
    }
}

impl Scheduler for Anticipatory {
    fn merge(&mut self, request: &Request, _now: Time) -> Option<Merge> {
        let merge = self
            .side(Batch::of(request))
            .requests
            .merge(request, MERGE_LIMIT, true)?;
        if let Some(gone) = merge.bridged {
            *self.history.waiting(gone.process) -= 1;
        }
        Some(merge)
    }

    fn add(&mut self, request: Request, now: Time) {
        if request.sync {
            self.history.learn(&request, request.process, now);
        }
        *self.history.waiting(request.process) += 1;
        self.side(Batch::of(&request)).requests.add(request);
        let waits = matches!(
            self.anticipation,
            Anticipation::AwaitingEnd | Anticipation::AwaitingNext
        );
        if waits && self.accepts(Some(request), now) {
            self.anticipation = Anticipation::Finished;
        }
    }

    fn dispatch(&mut self, now: Time, _in_flight: usize) -> Decision {
        self.end_expired_wait(now);
        let (reads, writes) = (
            !self.sync.requests.is_empty(),
            !self.background.requests.is_empty(),
        );
        self.batches.note_waiting(reads, writes);
        if !(reads || writes) || self.batches.draining {
            return Decision::Nothing;
        }
        match self.anticipation {
            Anticipation::AwaitingEnd => return Decision::Nothing,
            Anticipation::AwaitingNext => return self.idle(),
            Anticipation::Off | Anticipation::Finished => {}
        }
        if !(reads && writes && self.batches.expired(now))
            && let Some(decision) = self.continue_batch(now, reads && !writes)
        {
            return decision;
        }
        let next = if reads && !(writes && self.batches.current == Batch::Sync) {
            self.batches.start(Batch::Sync);
            self.sync.last_check = now;
            self.sync.requests.oldest()
        } else {
            self.batches.start(Batch::Async);
            self.nearest(Batch::Async)
        };
        self.send(next.expect("this side has requests"), now)
    }

    fn completed(&mut self, request: &Request, now: Time) {
        if self.batches.draining && self.in_flight == 1 {
            self.batches.drained(now);
        }
        self.in_flight -= 1;
        self.batches.ended(request, now);
        if self.awaited == Some(request.process) && request.sync {
            self.idle_since = Some(now);
            if self.anticipation == Anticipation::AwaitingEnd {
                self.anticipation = Anticipation::AwaitingNext;
            }
        }
        if request.sync {
            self.history.ended(request.process, now);
        }
    }

    fn waiting(&self) -> usize {
        self.sync.requests.len() + self.background.requests.len()
    }
}

impl Anticipatory {
    /// Continues a batch: the nearest request, the oldest if it has expired, or a wait. `None`: the
    /// batch has no more requests.
    fn continue_batch(&mut self, now: Time, alone: bool) -> Option<Decision> {
        let next = self.nearest(self.batches.current);
        if self.batches.current == Batch::Sync && self.tunables.antic_expire > 0 {
            if let Some(oldest) = self.sync.oldest_expired(now) {
                return Some(self.serve(oldest));
            }
            let candidate = next.map(|slot| *self.sync.requests.get(slot));
            if self.anticipation == Anticipation::Off && !self.accepts(candidate, now) {
                return Some(self.start_waiting());
            }
        }
        let next = next?;
        if alone {
            self.batches.prolong(now);
        }
        Some(self.send(next, now))
    }
}

/// Anticipation: when to wait for the next request of a process, and when the wait ends.
impl Anticipatory {
    /// The end of the wait, once it is known.
    fn wait_end(&self) -> Option<Time> {
        self.idle_since.map(|it| it + self.tunables.antic_expire)
    }

    fn end_expired_wait(&mut self, now: Time) {
        if self.anticipation == Anticipation::AwaitingNext
            && self.wait_end().is_some_and(|it| it <= now)
        {
            self.anticipation = Anticipation::Finished;
        }
    }

    /// Whether to serve `candidate` instead of waiting for the awaited process.
    fn accepts(&mut self, candidate: Option<Request>, now: Time) -> bool {
        let Some(process) = self.awaited else {
            return true;
        };
        if candidate.is_some_and(|it| it.process == process)
            || self.wait_end().is_some_and(|it| it <= now)
        {
            return true;
        }
        if *self.history.waiting(process) > 0 {
            return true;
        }
        if let Some(close) = candidate.filter(|it| it.sync && self.is_close(it, process, now)) {
            // A cooperating process: its request counts for the awaited process's history.
            self.history.learn(&close, process, now);
            return true;
        }
        let think_time = self.history.think_time(process);
        think_time.is_some_and(|it| it > self.tunables.antic_expire as f64)
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
        let usual = self.history.seek(process);
        usual.is_some_and(|it| it > head.abs_diff(request.sector) as f64)
    }

    fn start_waiting(&mut self) -> Decision {
        self.anticipation = match self.idle_since {
            Some(_) => Anticipation::AwaitingNext,
            None => Anticipation::AwaitingEnd,
        };
        self.idle()
    }

    fn idle(&self) -> Decision {
        self.wait_end()
            .map_or(Decision::Nothing, Decision::IdleUntil)
    }
}
