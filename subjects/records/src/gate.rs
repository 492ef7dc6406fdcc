//! How many transactions are at work at a time.
//!
//! Where more threads work than there are CPUs, the kernel interrupts them in the middle of
//! transactions, and what an interrupted one has locked stops the others for as long as it is out.
//! So a transaction begins only if a CPU will be there for it; the others wait while they hold nothing.
//! Who has come in goes on with its next transaction without waiting, until the first in the queue
//! has waited for a turn's time: a switch of threads costs as much as a transaction.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;
use std::time::Duration;

use concurve_latch::{Class, Condvar, Mutex, MutexGuard};

use crate::classes;

/// So long the first in the queue lets the others go on: about as long as a scheduler lets a thread run.
const TURN: Duration = Duration::from_millis(4);
/// So many turns after it has called for a place, those inside are taken to be idle.
const PATIENCE: u32 = 20;

/// Places for transactions at work.
#[derive(Debug)]
pub struct Gate {
    /// `None`: everybody comes in.
    places: Option<usize>,
    /// More than `places` while some inside are idle.
    limit: AtomicUsize,
    inside: AtomicUsize,
    /// The first in the queue has waited for its turn: who leaves next makes way.
    is_called: AtomicBool,
    queue: Mutex<VecDeque<Arc<Ticket>>>,
    queued: AtomicUsize,
    class: Class,
}

/// Where one sleeps who waits.
#[derive(Debug)]
struct Ticket {
    standing: Mutex<Standing>,
    changed: Condvar,
}

/// What somebody who waits is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Queued,
    First,
    Admitted,
}

impl Ticket {
    fn rise_to(&self, standing: Standing) {
        *self.standing.lock() = standing;
        self.changed.notify_one();
    }
}

impl Gate {
    /// A gate that nobody has to wait at.
    pub fn open() -> Self {
        Self::with_places(None)
    }

    /// A place for each CPU that this process may use, and one more: somebody inside may wait for a latch.
    pub fn of_cpus() -> Self {
        let cpus = thread::available_parallelism().ok();
        Self::with_places(cpus.map(|it| usize::from(it) + 1))
    }

    fn with_places(places: Option<usize>) -> Self {
        Self {
            places,
            limit: AtomicUsize::new(places.unwrap_or(usize::MAX)),
            inside: AtomicUsize::new(0),
            is_called: AtomicBool::new(false),
            queue: classes::gate().mutex(VecDeque::new()),
            queued: AtomicUsize::new(0),
            class: classes::gate(),
        }
    }

    /// Comes in, as soon as there is a place.
    pub fn enter(&self) {
        if self.places.is_none() || self.has_entered() {
            return;
        }
        let mut queue = self.queue.lock();
        let standing = match queue.is_empty() {
            true => Standing::First,
            false => Standing::Queued,
        };
        let ticket = Arc::new(Ticket {
            standing: self.class.mutex(standing),
            changed: Condvar::new(),
        });
        queue.push_back(Arc::clone(&ticket));
        self.queued.store(queue.len(), Release);
        drop(queue);
        self.wait(&ticket);
    }

    fn wait(&self, ticket: &Ticket) {
        let mut standing = ticket.standing.lock();
        let is_queued = |it: &mut Standing| *it == Standing::Queued;
        ticket.changed.wait_while(&mut standing, is_queued);
        let mut turns = 0;
        let is_first = |it: &mut Standing| *it == Standing::First;
        while ticket.changed.wait_while_for(&mut standing, is_first, TURN) {
            turns += 1;
            if turns > PATIENCE {
                self.limit.fetch_add(1, Relaxed);
                turns = 0;
            }
            // Who admits latches the queue first, and then the ticket.
            MutexGuard::unlocked(&mut standing, || self.call());
        }
    }

    /// Has the first in the queue come in: at once, or when somebody leaves.
    fn call(&self) {
        if self.inside.load(Relaxed) < self.limit.load(Relaxed) {
            self.admit_first();
        } else {
            self.is_called.store(true, Release);
        }
    }

    /// Goes out, and will be back soon.
    pub fn leave(&self) {
        self.go_out(self.is_called.load(Relaxed));
    }

    /// Goes out to sleep.
    pub fn leave_to_sleep(&self) {
        self.go_out(self.queued.load(Acquire) > 0);
    }

    fn go_out(&self, makes_way: bool) {
        let Some(places) = self.places else {
            return;
        };
        let others = self.inside.fetch_sub(1, AcqRel) - 1;
        if others < places && self.limit.load(Relaxed) > places {
            self.limit.store(places, Relaxed);
        }
        if makes_way {
            self.admit_first();
        }
    }

    fn has_entered(&self) -> bool {
        let limit = self.limit.load(Relaxed);
        let room = |inside: usize| (inside < limit).then_some(inside + 1);
        self.inside.fetch_update(AcqRel, Relaxed, room).is_ok()
    }

    /// Lets the first in the queue in, if there is one and a place for him.
    fn admit_first(&self) {
        let mut queue = self.queue.lock();
        if queue.is_empty() || !self.has_entered() {
            return;
        }
        self.is_called.store(false, Relaxed);
        if let Some(ticket) = queue.pop_front() {
            ticket.rise_to(Standing::Admitted);
        }
        self.queued.store(queue.len(), Release);
        if let Some(first) = queue.front() {
            first.rise_to(Standing::First);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_come_in_than_there_are_places() {
        let gate = Gate::with_places(Some(2));
        gate.enter();
        gate.enter();
        assert!(!gate.has_entered());
        gate.leave();
        assert!(gate.has_entered());
        assert!(!gate.has_entered());
    }

    #[test]
    fn nobody_is_forgotten() {
        let gate = Gate::with_places(Some(2));
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for round in 0..500 {
                        gate.enter();
                        match round % 3 {
                            0 => gate.leave_to_sleep(),
                            _ => gate.leave(),
                        }
                    }
                });
            }
        });
        assert_eq!(gate.inside.load(Relaxed), 0);
        assert!(gate.queue.lock().is_empty());
    }

    #[test]
    fn who_stays_inside_does_not_shut_out_others() {
        let gate = Gate::with_places(Some(1));
        gate.enter();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        gate.enter();
                        gate.leave();
                    }
                });
            }
        });
        gate.leave();
        assert_eq!(gate.inside.load(Relaxed), 0);
        // And there are no more places than before afterwards.
        assert_eq!(gate.limit.load(Relaxed), 1);
    }

    #[test]
    fn an_open_gate_counts_nobody() {
        let gate = Gate::open();
        for _ in 0..3 {
            gate.enter();
        }
        assert_eq!(gate.inside.load(Relaxed), 0);
        gate.leave();
        gate.leave_to_sleep();
    }
}
