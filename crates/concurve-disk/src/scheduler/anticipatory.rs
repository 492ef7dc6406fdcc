//! **as**: deadline that waits. After a read it expects the same process to read again nearby,
//! and leaves the disk idle for a moment instead of seeking away at once.
//!
//! Requests that somebody waits for ("sync": reads, and writes under `fsync`) and the others come
//! in batches by time. Within a batch the nearest request goes next, mostly upwards. Within a
//! sync batch, after each request:
//!
//! - it waits for the request to end, so **one is under way at a time**;
//! - it then waits `antic_expire` at most for the next one of that process, unless the process
//!   thinks longer than that on average, has asked already, or another request is close by.
//!
//! A change of direction lets the old batch drain. The number of writes of a batch is tuned so
//! that they take the time that they are meant to.
//!
//! Left out: the statistics on processes that end while they are waited for.

use super::elevator::Elevator;
use super::lane::{Lane, Slot};
use super::per_process::PerProcess;
use super::think_time::{DecayingMean, ThinkTime};
use super::{Decision, MERGE_LIMIT, Merge, Scheduler};
use crate::request::{ProcessId, Request};
use crate::time::{MILLISECOND, Time, milliseconds};

#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub read_expire: Time,
    pub write_expire: Time,
    pub read_batch_expire: Time,
    pub write_batch_expire: Time,
    /// How long the disk may idle for one process; 0: never, so that it behaves like deadline.
    pub antic_expire: Time,
    /// Think times above it count as this.
    pub max_think_time: Time,
    pub elevator: Elevator,
}

impl Default for Settings {
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

/// The two kinds of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Batch {
    Sync,
    Async,
}

impl Batch {
    fn of(request: &Request) -> Self {
        if request.sync {
            Self::Sync
        } else {
            Self::Async
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anticipation {
    Off,
    /// For the end of the request that was sent last.
    AwaitingEnd,
    /// For the next request of its process.
    AwaitingNext,
    /// Waited in vain, or not: the next request goes, whosever it is.
    Finished,
}

/// What is remembered of a process.
#[derive(Debug, Default)]
struct Habits {
    think_time: ThinkTime,
    seek: DecayingMean,
    last_end: Option<u64>,
    waiting: usize,
}

#[derive(Debug)]
struct Side {
    lane: Lane,
    /// Where the last request of this kind ended.
    head: u64,
    /// The order of arrival is looked at once in this time.
    expire: Time,
    last_check: Time,
}

impl Side {
    fn new(expire: Time) -> Self {
        Self {
            lane: Lane::default(),
            head: 0,
            expire,
            last_check: 0,
        }
    }

    /// Has the oldest request waited too long? Asked too soon again, the answer is no: many
    /// requests that have expired would otherwise make it seek to and fro.
    fn oldest_expired(&mut self, now: Time) -> Option<Slot> {
        if now - self.last_check < self.expire {
            return None;
        }
        self.last_check = now;
        let oldest = self.lane.oldest()?;
        (self.lane.get(oldest).arrived + self.expire < now).then_some(oldest)
    }
}

#[derive(Debug)]
pub struct Anticipatory {
    settings: Settings,
    sync: Side,
    later: Side,
    processes: PerProcess<Habits>,
    /// First think times and seeks of processes: what is to be expected of one not yet known.
    first_think_time: DecayingMean,
    first_seek: DecayingMean,

    batch: Batch,
    batch_end: Time,
    /// The old batch still drains.
    draining: bool,
    /// The time of the sync batch counts from the end of its first request.
    starting: bool,
    /// Writes that a batch may have, and that this one still has.
    write_count: u32,
    writes_left: u32,
    /// The batch of writes had nothing to compete with, so its time says nothing.
    uncontended: bool,

    anticipation: Anticipation,
    awaited: Option<ProcessId>,
    /// Since when the disk is kept idle for it; set when its request has ended.
    idle_since: Option<Time>,
    in_flight: usize,
}

impl Anticipatory {
    pub fn new(settings: Settings) -> Self {
        Self {
            sync: Side::new(settings.read_expire),
            later: Side::new(settings.write_expire),
            processes: PerProcess::default(),
            first_think_time: DecayingMean::default(),
            first_seek: DecayingMean::default(),
            batch: Batch::Sync,
            batch_end: settings.read_batch_expire,
            draining: false,
            starting: false,
            write_count: ((settings.write_batch_expire / MILLISECOND / 40) as u32).max(2),
            writes_left: 0,
            uncontended: false,
            anticipation: Anticipation::Off,
            awaited: None,
            idle_since: None,
            in_flight: 0,
            settings,
        }
    }

    fn side(&mut self, batch: Batch) -> &mut Side {
        match batch {
            Batch::Sync => &mut self.sync,
            Batch::Async => &mut self.later,
        }
    }

    fn nearest(&self, batch: Batch) -> Option<Slot> {
        let side = match batch {
            Batch::Sync => &self.sync,
            Batch::Async => &self.later,
        };
        self.settings.elevator.nearest(&side.lane, side.head)
    }

    // -- anticipation -------------------------------------------------------------------------

    /// The end of the wait, once it is known.
    fn wait_end(&self) -> Option<Time> {
        self.idle_since.map(|it| it + self.settings.antic_expire)
    }

    fn end_wait_in_time(&mut self, now: Time) {
        if self.anticipation == Anticipation::AwaitingNext
            && self.wait_end().is_some_and(|it| it <= now)
        {
            self.anticipation = Anticipation::Finished;
        }
    }

    /// Is there nothing better to expect than `candidate`?
    fn take_it(&mut self, candidate: Option<Request>, now: Time) -> bool {
        let Some(process) = self.awaited else {
            return true;
        };
        if candidate.is_some_and(|it| it.process == process)
            || self.wait_end().is_some_and(|it| it <= now)
        {
            return true;
        }
        let habits = self.processes.of(process);
        if habits.waiting > 0 {
            return true;
        }
        if let Some(close) = candidate.filter(|it| it.sync && self.is_close(it, process, now)) {
            // Processes that work side by side share their habits.
            self.learn(&close, process, now);
            return true;
        }
        let habits = self.processes.of(process);
        let known = habits.think_time.mean().map(|it| it.1);
        let think_time = known.or(self.first_think_time.mean());
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
        let habits = self.processes.of(process);
        let usual = habits.seek.mean().or(self.first_seek.mean());
        usual.is_some_and(|it| it > head.abs_diff(request.sector) as f64)
    }

    /// A sync request says how long its process thinks and how far it seeks.
    fn learn(&mut self, request: &Request, process: ProcessId, now: Time) {
        let most = self.settings.max_think_time;
        let habits = self.processes.of(process);
        let is_new = habits.think_time.mean().is_none();
        if habits.waiting == 0
            && let Some(sample) = habits.think_time.asked(now, most)
            && is_new
        {
            self.first_think_time.add(sample);
        }
        if let Some(end) = habits.last_end {
            let usual = habits.seek.mean().unwrap_or(0.0);
            let few = habits.seek.weight() < 0.25;
            let odd = if few { 2048.0 } else { 128.0 } * 1024.0;
            let distance = (end.abs_diff(request.sector) as f64).min(4.0 * usual + odd);
            if habits.seek.mean().is_none() {
                self.first_seek.add(distance);
            }
            habits.seek.add(distance);
        }
        habits.last_end = Some(request.end());
    }

    // -- batches ------------------------------------------------------------------------------

    fn batch_expired(&self, now: Time) -> bool {
        if self.draining || self.starting {
            return false;
        }
        now > self.batch_end || (self.batch == Batch::Async && self.writes_left == 0)
    }

    fn start_of(&mut self, batch: Batch) {
        if self.batch != batch {
            self.draining = true;
            self.starting = false;
        }
        self.batch = batch;
        if batch == Batch::Async {
            self.writes_left = self.write_count;
            self.uncontended = false;
        }
    }

    /// Send `slot` of the current batch, or the oldest if it has waited too long; nothing while
    /// the old batch drains.
    fn send(&mut self, slot: Slot, now: Time) -> Decision {
        let batch = self.batch;
        let slot = self.side(batch).oldest_expired(now).unwrap_or(slot);
        if self.draining {
            if self.in_flight > 0 {
                return Decision::Nothing;
            }
            self.drained(now);
        }
        self.serve(slot)
    }

    fn drained(&mut self, now: Time) {
        self.draining = false;
        match self.batch {
            Batch::Sync => self.starting = true,
            Batch::Async => self.batch_end = now + self.settings.write_batch_expire,
        }
    }

    fn serve(&mut self, slot: Slot) -> Decision {
        let batch = self.batch;
        let side = self.side(batch);
        let request = side.lane.remove(slot);
        side.head = request.end();
        self.anticipation = Anticipation::Off;
        self.idle_since = None;
        match batch {
            Batch::Sync => self.awaited = Some(request.process),
            Batch::Async => {
                self.awaited = None;
                self.writes_left = self.writes_left.saturating_sub(1);
            }
        }
        self.processes.of(request.process).waiting -= 1;
        self.in_flight += 1;
        Decision::Serve(request)
    }

    /// More writes a batch if they took less than their time, fewer if they took more.
    fn tune_writes(&mut self, now: Time) {
        let meant = self.settings.write_batch_expire as i64;
        let took = (now as i64 - self.batch_end as i64 + meant).max(0);
        if took > meant && !self.uncontended {
            if took > 3 * meant {
                self.write_count /= 2;
            } else {
                self.write_count -= 1;
            }
        } else if took < meant && self.writes_left == 0 {
            if meant > 3 * took {
                self.write_count *= 2;
            } else {
                self.write_count += 1;
            }
        }
        self.write_count = self.write_count.clamp(1, 1 << 16);
    }
}

impl Scheduler for Anticipatory {
    fn merge(&mut self, request: &Request, _now: Time) -> Option<Merge> {
        let merge = self
            .side(Batch::of(request))
            .lane
            .merge(request, MERGE_LIMIT, true)?;
        if let Some(gone) = merge.bridged {
            self.processes.of(gone.process).waiting -= 1;
        }
        Some(merge)
    }

    fn add(&mut self, request: Request, now: Time) {
        if request.sync {
            self.learn(&request, request.process, now);
        }
        self.processes.of(request.process).waiting += 1;
        self.side(Batch::of(&request)).lane.add(request);
        let waits = matches!(
            self.anticipation,
            Anticipation::AwaitingEnd | Anticipation::AwaitingNext
        );
        if waits && self.take_it(Some(request), now) {
            self.anticipation = Anticipation::Finished;
        }
    }

    fn dispatch(&mut self, now: Time, _in_flight: usize) -> Decision {
        self.end_wait_in_time(now);
        let (reads, writes) = (!self.sync.lane.is_empty(), !self.later.lane.is_empty());
        if self.batch == Batch::Async && !reads && (self.writes_left == 0 || !writes) {
            self.uncontended = true;
        }
        if !(reads || writes) || self.draining {
            return Decision::Nothing;
        }
        match self.anticipation {
            Anticipation::AwaitingEnd => return Decision::Nothing,
            Anticipation::AwaitingNext => return self.idle(),
            Anticipation::Off | Anticipation::Finished => {}
        }
        if !(reads && writes && self.batch_expired(now))
            && let Some(decision) = self.go_on(now, reads && !writes)
        {
            return decision;
        }
        let next = if reads && !(writes && self.batch == Batch::Sync) {
            self.start_of(Batch::Sync);
            self.sync.last_check = now;
            self.sync.lane.oldest()
        } else {
            self.start_of(Batch::Async);
            self.nearest(Batch::Async)
        };
        self.send(next.expect("this side has requests"), now)
    }

    fn completed(&mut self, request: &Request, now: Time) {
        if self.draining && self.in_flight == 1 {
            self.drained(now);
        }
        self.in_flight -= 1;
        if self.starting && self.batch == Batch::of(request) {
            self.tune_writes(now);
            self.batch_end = now + self.settings.read_batch_expire;
            self.starting = false;
        }
        if self.awaited == Some(request.process) && request.sync {
            self.idle_since = Some(now);
            if self.anticipation == Anticipation::AwaitingEnd {
                self.anticipation = Anticipation::AwaitingNext;
            }
        }
        if request.sync {
            let habits = self.processes.of(request.process);
            habits.think_time.ended(now);
        }
    }

    fn waiting(&self) -> usize {
        self.sync.lane.len() + self.later.lane.len()
    }
}

impl Anticipatory {
    /// Within a batch: the nearest request, the oldest if it has waited too long, or a wait.
    /// `None`: the batch has nothing more.
    fn go_on(&mut self, now: Time, alone: bool) -> Option<Decision> {
        let next = self.nearest(self.batch);
        if self.batch == Batch::Sync && self.settings.antic_expire > 0 {
            if let Some(oldest) = self.sync.oldest_expired(now) {
                return Some(self.serve(oldest));
            }
            let candidate = next.map(|slot| *self.sync.lane.get(slot));
            if self.anticipation == Anticipation::Off && !self.take_it(candidate, now) {
                return Some(self.begin_to_wait());
            }
        }
        let next = next?;
        if alone {
            self.batch_end = now + self.settings.read_batch_expire;
        }
        Some(self.send(next, now))
    }

    fn begin_to_wait(&mut self) -> Decision {
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
