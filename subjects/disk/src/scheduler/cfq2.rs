//! **cfq2** (version 2 of cfq, as in 2.6.10 to 2.6.12): every process has a queue, and the queues
//! send one request each in turn. It knows no time slices, no classes, and never keeps the disk
//! idle.
//!
//! - The queues stand in the order of the service that they had. A dispatch takes one request of
//!   each, first of those without a request at the device, until it has `quantum` or more.
//! - Of a queue the nearest request goes next, mostly upwards. The oldest goes first when its time
//!   is over, which is looked at once in `fifo_interval`. As in that kernel, the two times are the
//!   wrong way round: asynchronous requests expire after that of reads.
//! - Service is the time that requests take at the device. Once the device has had `tags` requests
//!   at a time, service is a count of requests instead.
//! - A process with `queued` requests waits until it has its share of the device's queue.
//!
//! The requests of a dispatch go to the device by sector, which is what that kernel's comment
//! promises. Its code moves the place of the last request before it looks for the next one's place,
//! so that the order of turns mostly stays; [`Order::Turns`] is this reading.

use std::collections::VecDeque;

use clap::ValueEnum;

use super::per_process::PerProcess;
use super::request_queue::{Elevator, RequestQueue, Slot};
use super::{Admission, Decision, MERGE_LIMIT, Merge, Scheduler};
use crate::request::{Direction, Request};
use crate::time::{MILLISECOND, SECOND, Time};

/// The order in which the requests of a dispatch go to the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// One sweep from the last request on, as the kernel's comment says
    #[default]
    Sectors,
    /// That in which the queues had their turns, as the kernel's code mostly does
    Turns,
}

/// The tunables, by the names that the kernel gives them where it has them.
#[derive(Debug, Clone, Copy)]
pub struct Cfq2Tunables {
    /// Requests at which a dispatch ends.
    pub quantum: usize,
    /// Requests that a process may always have.
    pub queued: usize,
    /// Requests that a process may have at most.
    pub max_queued: usize,
    /// Requests of a direction that the device's queue holds, which busy processes share.
    pub nr_requests: usize,
    /// How often a queue's oldest requests are looked at (`fifo_rate`).
    pub fifo_interval: Time,
    pub fifo_expire_r: Time,
    pub fifo_expire_w: Time,
    pub elevator: Elevator,
    /// How long service counts before it decays (`cfq_service`).
    pub service: Time,
    /// Requests at the device that show that it takes several at a time.
    pub tags: usize,
    /// The kernel's clock counts in these: HZ was 1000.
    pub tick: Time,
    pub order: Order,
}

impl Default for Cfq2Tunables {
    fn default() -> Self {
        Self {
            quantum: 4,
            queued: 8,
            max_queued: 32,
            nr_requests: 128,
            fifo_interval: SECOND / 8,
            fifo_expire_r: SECOND / 2,
            fifo_expire_w: 5 * SECOND,
            elevator: Elevator {
                back_max: 16 * 1024 * 2,
                back_penalty: 2,
            },
            service: SECOND,
            tags: 4,
            tick: MILLISECOND,
            order: Order::Sectors,
        }
    }
}

/// The requests of a process, and the service that it had.
#[derive(Debug, Default)]
struct Queue {
    asynchronous: RequestQueue,
    synchronous: RequestQueue,
    last_expiry: Option<Time>,
    service_start: Option<Time>,
    service_used: u64,
    /// Requests that were taken from it and are not done.
    in_flight: usize,
    /// Reads and writes that wait or are in flight.
    allocated: [usize; 2],
    /// Whether it is among the busy ones.
    listed: bool,
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.asynchronous.is_empty() && self.synchronous.is_empty()
    }

    fn requests(&mut self, sync: bool) -> &mut RequestQueue {
        match sync {
            true => &mut self.synchronous,
            false => &mut self.asynchronous,
        }
    }

    /// The request to be sent next: one whose time is over, or the nearest to the head.
    fn take_next(&mut self, tunables: &Cfq2Tunables, head: u64, now: Time) -> Request {
        let (sync, slot) = match self.expired(tunables, now) {
            Some(found) => {
                self.last_expiry = Some(now);
                found
            }
            None => self
                .nearest(tunables.elevator, head)
                .expect("a busy queue has requests"),
        };
        self.in_flight += 1;
        self.requests(sync).remove(slot)
    }

    /// The asynchronous requests are asked for the time of reads, the synchronous ones for that
    /// of writes: the kernel indexes its two lists by "is synchronous".
    fn expired(&self, tunables: &Cfq2Tunables, now: Time) -> Option<(bool, Slot)> {
        let soon = |last: Time| now < last + tunables.fifo_interval;
        if self.last_expiry.is_some_and(soon) {
            return None;
        }
        let lists = [
            (false, &self.asynchronous, tunables.fifo_expire_r),
            (true, &self.synchronous, tunables.fifo_expire_w),
        ];
        lists.into_iter().find_map(|(sync, requests, expire)| {
            let slot = requests.oldest()?;
            (now > requests.get(slot).arrived + expire).then_some((sync, slot))
        })
    }

    fn nearest(&self, elevator: Elevator, head: u64) -> Option<(bool, Slot)> {
        let of = |sync: bool, requests: &RequestQueue| {
            let slot = elevator.nearest(requests, head)?;
            Some((elevator.cost(requests.get(slot).sector, head), sync, slot))
        };
        let found = [of(false, &self.asynchronous), of(true, &self.synchronous)];
        let nearest = found.into_iter().flatten().min_by_key(|it| it.0)?;
        Some((nearest.1, nearest.2))
    }

    /// Service decays once in so long a time.
    fn decay(&mut self, now: Time, after: Time, divisor: u64) {
        match self.service_start {
            Some(start) if now > start + after => {
                self.service_start = Some(now);
                self.service_used /= divisor;
            }
            Some(_) => {}
            None => self.service_start = Some(now),
        }
    }
}

#[derive(Debug)]
pub struct Cfq2 {
    tunables: Cfq2Tunables,
    queues: Vec<Queue>,
    index: PerProcess<Option<usize>>,
    /// The queues with requests, the one with the least service first.
    busy: Vec<usize>,
    /// The requests that go to the device next.
    outgoing: VecDeque<Request>,
    /// Where the last request that was taken ends (`last_sector`).
    head: u64,
    waiting: usize,
    /// The requests at the device by ticket, and when they went there.
    at_device: Vec<(u32, Time)>,
    /// The device takes several requests at a time.
    tagged: bool,
}

impl Cfq2 {
    pub fn new(tunables: Cfq2Tunables) -> Self {
        Self {
            tunables,
            queues: Vec::new(),
            index: PerProcess::default(),
            busy: Vec::new(),
            outgoing: VecDeque::new(),
            head: 0,
            waiting: 0,
            at_device: Vec::new(),
            tagged: false,
        }
    }

    fn queue_of(&mut self, request: &Request) -> usize {
        *self.index.of(request.process).get_or_insert_with(|| {
            self.queues.push(Queue::default());
            self.queues.len() - 1
        })
    }

    /// Puts a queue among the busy ones: behind those with as much service and as few requests in
    /// flight.
    fn list(&mut self, index: usize) {
        let key = |it: usize| (self.queues[it].service_used, self.queues[it].in_flight);
        let behind = self.busy.iter().rposition(|&it| key(it) <= key(index));
        self.busy.insert(behind.map_or(0, |it| it + 1), index);
        self.queues[index].listed = true;
    }

    fn unlist(&mut self, index: usize) {
        self.busy.retain(|&it| it != index);
        self.queues[index].listed = false;
    }

    /// Its service has changed.
    fn relist(&mut self, index: usize) {
        if self.queues[index].listed {
            self.unlist(index);
            self.list(index);
        }
    }

    /// Takes one request of each queue, in rounds, until there are `quantum`.
    fn fill(&mut self, now: Time) {
        let begin = self.head;
        self.round(now, true);
        while self.outgoing.len() < self.tunables.quantum && !self.busy.is_empty() {
            self.round(now, false);
        }
        if self.tunables.order == Order::Sectors {
            let by_sweep = |it: &Request| (it.sector < begin, it.sector);
            self.outgoing.make_contiguous().sort_by_key(by_sweep);
        }
    }

    fn round(&mut self, now: Time, only_without_in_flight: bool) {
        for index in self.busy.clone() {
            let queue = &mut self.queues[index];
            if only_without_in_flight && queue.in_flight > 0 {
                continue;
            }
            let request = queue.take_next(&self.tunables, self.head, now);
            if queue.is_empty() {
                self.unlist(index);
            }
            self.head = request.end();
            self.outgoing.push_back(request);
        }
    }

    fn account_dispatch(&mut self, request: &Request, now: Time) {
        let index = self.queue_of(request);
        let queue = &mut self.queues[index];
        if self.tagged {
            queue.decay(now, self.tunables.service, 10);
            queue.service_used += 1;
            self.relist(index);
        } else if queue.service_start.is_none() {
            queue.service_start = Some(now);
        }
        self.at_device.push((request.ticket, now));
        self.tagged |= self.at_device.len() >= self.tunables.tags;
    }

    fn account_completion(&mut self, request: &Request, now: Time) {
        let at = self.at_device.iter().position(|it| it.0 == request.ticket);
        let (_, sent) = self.at_device.swap_remove(at.expect("it was sent"));
        if self.tagged {
            return;
        }
        let index = self.queue_of(request);
        let tick = self.tunables.tick;
        let queue = &mut self.queues[index];
        queue.decay(now, self.tunables.service, 8);
        queue.service_used += now / tick - sent / tick;
        self.relist(index);
    }
}

fn side(request: &Request) -> usize {
    match request.direction {
        Direction::Read => 0,
        Direction::Write => 1,
    }
}

impl Scheduler for Cfq2 {
    /// At the end of any process's request, at the beginning of one of its own.
    fn merge(&mut self, request: &Request, _now: Time) -> Option<Merge> {
        let own = self.queue_of(request);
        let others = self.busy.iter().copied().filter(|&it| it != own);
        let merge = std::iter::once(own).chain(others).find_map(|index| {
            let requests = self.queues[index].requests(request.sync);
            requests.merge(request, MERGE_LIMIT, index == own)
        })?;
        if let Some(gone) = merge.bridged {
            let index = self.queue_of(&gone);
            self.queues[index].allocated[side(&gone)] -= 1;
            self.waiting -= 1;
        }
        Some(merge)
    }

    fn add(&mut self, request: Request, now: Time) {
        let index = self.queue_of(&request);
        let queue = &mut self.queues[index];
        queue.allocated[side(&request)] += 1;
        queue.requests(request.sync).add(request);
        self.waiting += 1;
        if !queue.listed {
            let idle_for_long = |start| now > start + self.tunables.service;
            if queue.service_start.is_some_and(idle_for_long) {
                queue.service_used /= 8;
            }
            self.list(index);
        }
    }

    fn dispatch(&mut self, now: Time, _in_flight: usize) -> Decision {
        if self.outgoing.is_empty() {
            self.fill(now);
        }
        let Some(request) = self.outgoing.pop_front() else {
            return Decision::Nothing;
        };
        self.waiting -= 1;
        self.account_dispatch(&request, now);
        Decision::Serve(request)
    }

    fn completed(&mut self, request: &Request, now: Time) {
        let index = self.queue_of(request);
        let queue = &mut self.queues[index];
        queue.in_flight -= 1;
        queue.allocated[side(request)] -= 1;
        self.account_completion(request, now);
    }

    fn waiting(&self) -> usize {
        self.waiting
    }

    /// `queued` requests are always admitted. Further ones are while the device's queue has room
    /// and the process keeps within its share.
    fn admission(&mut self, request: &Request, full: bool) -> Admission {
        let index = self.queue_of(request);
        let Cfq2Tunables {
            queued,
            max_queued,
            nr_requests,
            ..
        } = self.tunables;
        let allocated = self.queues[index].allocated[side(request)];
        if allocated < queued {
            return Admission::Yes;
        }
        let share = match self.busy.len() {
            0 => max_queued,
            busy => (nr_requests / busy).clamp(queued, max_queued),
        };
        match allocated < share && !full {
            true => Admission::Yes,
            false => Admission::NotThisProcess,
        }
    }
}
