//! **bfq**, in outline: every process has a queue; queues get budgets of sectors in turn, instead of
//! slices of time. Virtual finish times (B-WF²Q+) decide which queue is next, so that each gets its
//! share of the sectors whatever the sizes of its requests.
//!
//! Left out: the detection of interactive and soft real-time programs, the merging of queues that
//! work together, and the tuning of budgets.

use super::per_process::QueueIndex;
use super::per_process::ThinkTime;
use super::request_queue::Elevator;
use super::request_queue::RequestQueue;
use super::{Decision, MERGE_LIMIT, Merge, Scheduler};
use crate::request::Request;
use crate::time::{MILLISECOND, Time};

/// The tunables, by the names that the kernel gives them where it has them.
#[derive(Debug, Clone, Copy)]
pub struct BfqTunables {
    /// Sectors that a queue may send before the next one's turn.
    pub budget: u64,
    /// Time after which its turn ends, whatever it has sent.
    pub budget_timeout: Time,
    pub slice_idle: Time,
    pub elevator: Elevator,
}

impl Default for BfqTunables {
    fn default() -> Self {
        Self {
            budget: 16 * 1024,
            budget_timeout: 125 * MILLISECOND,
            slice_idle: 8 * MILLISECOND,
            elevator: Elevator {
                back_max: 16 * 1024 * 2,
                back_penalty: 2,
            },
        }
    }
}

#[derive(Debug, Default)]
struct Queue {
    requests: RequestQueue,
    weight: f64,
    /// Virtual times between which it is owed its budget.
    start: f64,
    finish: f64,
    is_sync: bool,
    think_time: ThinkTime,
    in_flight: usize,
}

#[derive(Debug)]
struct Turn {
    queue: usize,
    sent: u64,
    end: Time,
    idle_until: Option<Time>,
}

#[derive(Debug)]
pub struct Bfq {
    tunables: BfqTunables,
    queues: Vec<Queue>,
    index: QueueIndex,
    turn: Option<Turn>,
    virtual_time: f64,
    head: u64,
    waiting: usize,
}

impl Bfq {
    pub fn new(tunables: BfqTunables) -> Self {
        Self {
            tunables,
            queues: Vec::new(),
            index: QueueIndex::default(),
            turn: None,
            virtual_time: 0.0,
            head: 0,
            waiting: 0,
        }
    }

    /// Weights fall by the level: 8 at the highest, 1 at the lowest.
    fn queue_of(&mut self, request: &Request) -> usize {
        *self.index.of(request).get_or_insert_with(|| {
            self.queues.push(Queue {
                weight: f64::from(8 - request.priority.level.min(7)),
                is_sync: request.sync,
                ..Queue::default()
            });
            self.queues.len() - 1
        })
    }

    /// Continues the present turn. `None`: it is over, or there is none.
    fn keep_turn(&mut self, now: Time) -> Option<Result<usize, Decision>> {
        let turn = self.turn.as_mut()?;
        let queue = &self.queues[turn.queue];
        if turn.sent >= self.tunables.budget || now > turn.end {
            return None;
        }
        if !queue.requests.is_empty() {
            turn.idle_until = None;
            return Some(Ok(turn.queue));
        }
        let thinks = queue.think_time.mean().map_or(0.0, |it| it.1);
        if !queue.is_sync || thinks > self.tunables.slice_idle as f64 {
            return None;
        }
        if queue.in_flight > 0 {
            return Some(Err(Decision::Nothing));
        }
        let until = *turn
            .idle_until
            .get_or_insert(now + self.tunables.slice_idle);
        (now < until).then_some(Err(Decision::IdleUntil(until)))
    }

    /// Charges the queue for what it sent, not for its whole budget.
    fn end_turn(&mut self) {
        if let Some(turn) = self.turn.take() {
            let queue = &mut self.queues[turn.queue];
            queue.finish = queue.start + turn.sent as f64 / queue.weight;
            self.virtual_time += turn.sent as f64 / self.total_weight();
            self.activate(turn.queue);
        }
    }

    fn total_weight(&self) -> f64 {
        let active = self.queues.iter().filter(|it| !it.requests.is_empty());
        active.map(|it| it.weight).sum::<f64>().max(1.0)
    }

    fn activate(&mut self, index: usize) {
        let queue = &mut self.queues[index];
        queue.start = queue.finish.max(self.virtual_time);
        queue.finish = queue.start + self.tunables.budget as f64 / queue.weight;
    }

    /// Of the eligible queues, the one with the earliest finish time.
    fn next_queue(&mut self) -> usize {
        let active = || {
            self.queues
                .iter()
                .enumerate()
                .filter(|it| !it.1.requests.is_empty())
        };
        let earliest = active().map(|it| it.1.start).fold(f64::INFINITY, f64::min);
        self.virtual_time = self.virtual_time.max(earliest);
        active()
            .filter(|it| it.1.start <= self.virtual_time)
            .min_by(|a, b| a.1.finish.total_cmp(&b.1.finish))
            .map(|it| it.0)
            .expect("something waits, and the earliest is eligible")
    }
}

impl Scheduler for Bfq {
    fn merge(&mut self, request: &Request, _now: Time) -> Option<Merge> {
        let queue = (*self.index.of(request))?;
        let merge = self.queues[queue]
            .requests
            .merge(request, MERGE_LIMIT, true)?;
        if merge.bridged.is_some() {
            self.waiting -= 1;
        }
        Some(merge)
    }

    fn add(&mut self, request: Request, now: Time) {
        let index = self.queue_of(&request);
        let most = 2 * self.tunables.slice_idle;
        let queue = &mut self.queues[index];
        if request.sync {
            queue.think_time.asked(now, most);
        }
        let was_empty = queue.requests.is_empty();
        queue.requests.add(request);
        self.waiting += 1;
        let has_turn = self.turn.as_ref().is_some_and(|it| it.queue == index);
        if was_empty && !has_turn {
            self.activate(index);
        }
    }

    fn dispatch(&mut self, now: Time, _in_flight: usize) -> Decision {
        if self.waiting == 0 {
            return Decision::Nothing;
        }
        let index = match self.keep_turn(now) {
            Some(Ok(queue)) => queue,
            Some(Err(decision)) => return decision,
            None => {
                self.end_turn();
                let queue = self.next_queue();
                self.turn = Some(Turn {
                    queue,
                    sent: 0,
                    end: now + self.tunables.budget_timeout,
                    idle_until: None,
                });
                queue
            }
        };
        let queue = &mut self.queues[index];
        let nearest = self.tunables.elevator.nearest(&queue.requests, self.head);
        let request = queue
            .requests
            .remove(nearest.expect("a chosen queue has requests"));
        queue.in_flight += 1;
        self.waiting -= 1;
        self.head = request.end();
        if let Some(turn) = &mut self.turn {
            turn.sent += u64::from(request.sectors);
        }
        Decision::Serve(request)
    }

    fn completed(&mut self, request: &Request, now: Time) {
        let index = self.queue_of(request);
        self.queues[index].in_flight -= 1;
        if request.sync {
            self.queues[index].think_time.ended(now);
        }
    }

    fn waiting(&self) -> usize {
        self.waiting
    }
}
