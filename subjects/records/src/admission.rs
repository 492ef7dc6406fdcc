//! Admission control: limits how many transactions run at a time.
//!
//! With more running threads than CPUs, the kernel preempts threads in the middle of transactions,
//! and the locks of a preempted one stop the others until it runs again. So a transaction is
//! admitted only if a CPU is available for it; the others wait while they hold no locks. A session
//! that leaves may enter again without waiting, until the first session in the queue has waited for
//! a time slice: a context switch costs as much as a transaction.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::thread;
use std::time::Duration;

use concurve_latch::{Class, Condvar, Mutex, MutexGuard};

use crate::classes;
use crate::counted::{AtomicBool, AtomicUsize};

/// The first session in the queue lets the others continue for this time: about a time slice of the
/// scheduler.
const TIME_SLICE: Duration = Duration::from_millis(4);
/// After so many time slices without a free slot, the admitted sessions are assumed to be idle.
const SLICES_MAX: u32 = 20;

/// The limit of running transactions, and the queue for it.
#[derive(Debug)]
pub struct Admission {
    /// `None`: no limit.
    slots: Option<usize>,
    /// More than `slots` while some admitted sessions are idle.
    limit: AtomicUsize,
    admitted: AtomicUsize,
    /// The first in the queue has waited long enough: the next session that leaves admits it.
    is_requested: AtomicBool,
    queue: Mutex<VecDeque<Arc<Ticket>>>,
    queued: AtomicUsize,
    class: Class,
}

/// A waiting session sleeps on its ticket.
#[derive(Debug)]
struct Ticket {
    state: Mutex<TicketState>,
    changed: Condvar,
}

/// The state of a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TicketState {
    Queued,
    First,
    Admitted,
}

impl Ticket {
    fn set(&self, state: TicketState) {
        *self.state.lock() = state;
        self.changed.notify_one();
    }
}

impl Admission {
    /// Without a limit.
    pub fn unlimited() -> Self {
        Self::with_slots(None)
    }

    /// A slot for each CPU that this process may use, and one more, because an admitted session may
    /// wait for a latch.
    pub fn for_cpus() -> Self {
        let cpus = thread::available_parallelism().ok();
        Self::with_slots(cpus.map(|it| usize::from(it) + 1))
    }

    fn with_slots(slots: Option<usize>) -> Self {
        Self {
            slots,
            limit: AtomicUsize::new(slots.unwrap_or(usize::MAX)),
            admitted: AtomicUsize::new(0),
            is_requested: AtomicBool::new(false),
            queue: classes::admission().mutex(VecDeque::new()),
            queued: AtomicUsize::new(0),
            class: classes::admission(),
        }
    }

    /// Whether so many sessions must wait for each other: without need, nothing is counted, so that
    /// their CPUs share no cache line.
    pub fn is_needed(&self, sessions: usize) -> bool {
        self.slots.is_some_and(|slots| sessions > slots)
    }

    /// Waits for a free slot, and takes it.
    pub fn enter(&self) {
        if self.slots.is_none() || self.try_enter() {
            return;
        }
        let mut queue = self.queue.lock();
        let state = match queue.is_empty() {
            true => TicketState::First,
            false => TicketState::Queued,
        };
        let ticket = Arc::new(Ticket {
            state: self.class.mutex(state),
            changed: Condvar::new(),
        });
        queue.push_back(Arc::clone(&ticket));
        self.queued.store(queue.len(), Release);
        drop(queue);
        self.wait(&ticket);
    }

    fn wait(&self, ticket: &Ticket) {
        let mut state = ticket.state.lock();
        let is_queued = |it: &mut TicketState| *it == TicketState::Queued;
        ticket.changed.wait_while(&mut state, is_queued);
        let mut slices = 0;
        let is_first = |it: &mut TicketState| *it == TicketState::First;
        while ticket
            .changed
            .wait_while_for(&mut state, is_first, TIME_SLICE)
        {
            slices += 1;
            if slices > SLICES_MAX {
                self.limit.fetch_add(1, Relaxed);
                slices = 0;
            }
            // The ticket is unlocked: an admitting thread locks the queue before the ticket.
            MutexGuard::unlocked(&mut state, || self.request());
        }
    }

    /// Admits the first in the queue: at once, or when a session leaves.
    fn request(&self) {
        if self.admitted.load(Relaxed) < self.limit.load(Relaxed) {
            self.admit_first();
        } else {
            self.is_requested.store(true, Release);
        }
    }

    /// Frees the slot; the session will enter again soon.
    pub fn leave(&self) {
        self.free_slot(self.is_requested.load(Relaxed));
    }

    /// Frees the slot before the session sleeps.
    pub fn leave_to_sleep(&self) {
        self.free_slot(self.queued.load(Acquire) > 0);
    }

    fn free_slot(&self, admits_next: bool) {
        let Some(slots) = self.slots else {
            return;
        };
        let others = self.admitted.fetch_sub(1, AcqRel) - 1;
        if others < slots && self.limit.load(Relaxed) > slots {
            self.limit.store(slots, Relaxed);
        }
        if admits_next {
            self.admit_first();
        }
    }

    fn try_enter(&self) -> bool {
        let limit = self.limit.load(Relaxed);
        let next = |admitted: usize| (admitted < limit).then_some(admitted + 1);
        self.admitted.fetch_update(AcqRel, Relaxed, next).is_ok()
    }

    /// Admits the first in the queue, if there is one and a free slot.
    fn admit_first(&self) {
        let mut queue = self.queue.lock();
        if queue.is_empty() || !self.try_enter() {
            return;
        }
        self.is_requested.store(false, Relaxed);
        if let Some(ticket) = queue.pop_front() {
            ticket.set(TicketState::Admitted);
        }
        self.queued.store(queue.len(), Release);
        if let Some(first) = queue.front() {
            first.set(TicketState::First);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_admitted_than_there_are_slots() {
        let admission = Admission::with_slots(Some(2));
        admission.enter();
        admission.enter();
        assert!(!admission.try_enter());
        admission.leave();
        assert!(admission.try_enter());
        assert!(!admission.try_enter());
    }

    #[test]
    fn as_many_sessions_as_slots_need_no_admission() {
        let admission = Admission::with_slots(Some(2));
        assert!(!admission.is_needed(2));
        assert!(admission.is_needed(3));
        assert!(!Admission::unlimited().is_needed(1000));
    }

    #[test]
    fn every_waiter_is_admitted() {
        let admission = Admission::with_slots(Some(2));
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for round in 0..500 {
                        admission.enter();
                        match round % 3 {
                            0 => admission.leave_to_sleep(),
                            _ => admission.leave(),
                        }
                    }
                });
            }
        });
        assert_eq!(admission.admitted.load(Relaxed), 0);
        assert!(admission.queue.lock().is_empty());
    }

    #[test]
    fn an_idle_admitted_session_does_not_block_others() {
        let admission = Admission::with_slots(Some(1));
        admission.enter();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        admission.enter();
                        admission.leave();
                    }
                });
            }
        });
        admission.leave();
        assert_eq!(admission.admitted.load(Relaxed), 0);
        // Afterwards there are no more slots than before.
        assert_eq!(admission.limit.load(Relaxed), 1);
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let admission = Admission::unlimited();
        for _ in 0..3 {
            admission.enter();
        }
        assert_eq!(admission.admitted.load(Relaxed), 0);
        admission.leave();
        admission.leave_to_sleep();
    }
}
