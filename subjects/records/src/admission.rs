//! Admission control: limits how many transactions run at a time.
//!
//! With more running threads than CPUs, the kernel preempts threads in the middle of transactions,
//! and the locks of a preempted one stop the others until it runs again. So a transaction is
//! admitted only if a CPU is available for it; the others wait while they hold no locks. A session
//! whose transaction has ended keeps its slot for the next one, until the first session in the queue has
//! waited for a time slice: a context switch costs as much as a transaction. Who needs a slot takes one
//! that is kept. So a session that begins one transaction after the other writes to no word of others.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
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
    /// Slots that are in use or kept.
    admitted: AtomicUsize,
    /// The first in the queue has waited long enough: the next session that leaves admits it.
    is_requested: AtomicBool,
    queue: Mutex<VecDeque<Arc<Ticket>>>,
    queued: AtomicUsize,
    class: Class,
}

/// What a session has of the slots: its own thread changes it, and others take what is kept.
#[derive(Debug, Default)]
pub struct Slot(AtomicU8);

const NONE: u8 = 0;
const IN_USE: u8 = 1;
/// Its transaction has ended, and the next one goes on with it.
const KEPT: u8 = 2;

impl Slot {
    /// Takes the slot of a session that runs no transaction, if it keeps one.
    pub fn take_kept(&self) -> bool {
        self.change(KEPT, NONE)
    }

    fn change(&self, from: u8, to: u8) -> bool {
        let is_so = self.0.load(Relaxed) == from;
        is_so && self.0.compare_exchange(from, to, AcqRel, Relaxed).is_ok()
    }
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

    /// Goes on with the slot that the session has kept, or waits for one. `take_kept` takes one that another
    /// session keeps, if there is one.
    pub fn enter(&self, slot: &Slot, take_kept: impl Fn() -> bool) {
        if self.slots.is_none() || slot.change(KEPT, IN_USE) {
            return;
        }
        if !self.try_enter() && !take_kept() {
            self.queue_up(take_kept);
        }
        slot.0.store(IN_USE, Release);
    }

    fn queue_up(&self, take_kept: impl Fn() -> bool) {
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
        self.wait(&ticket, take_kept);
    }

    fn wait(&self, ticket: &Ticket, take_kept: impl Fn() -> bool) {
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
            MutexGuard::unlocked(&mut state, || self.request(&take_kept));
        }
    }

    /// Admits the first in the queue: at once, or when a transaction ends.
    fn request(&self, take_kept: &impl Fn() -> bool) {
        if take_kept() {
            self.free_slot(true);
        } else if self.admitted.load(Relaxed) < self.limit.load(Relaxed) {
            self.admit_first();
        } else {
            self.is_requested.store(true, Release);
        }
    }

    /// The transaction has ended: the session keeps its slot, unless another one has waited long enough.
    pub fn leave(&self, slot: &Slot) {
        if slot.0.load(Relaxed) != IN_USE {
            return;
        }
        if self.is_requested.load(Relaxed) {
            self.give_up(slot);
        } else {
            slot.0.store(KEPT, Release);
        }
    }

    /// Frees the slot that a session may have, before it sleeps or ends.
    pub fn give_up(&self, slot: &Slot) {
        if slot.0.load(Relaxed) != NONE && slot.0.swap(NONE, AcqRel) != NONE {
            self.free_slot(self.queued.load(Acquire) > 0);
        }
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

    fn nothing_kept() -> bool {
        false
    }

    fn take_kept_of(slots: &[Slot]) -> bool {
        slots.iter().any(Slot::take_kept)
    }

    #[test]
    fn no_more_are_admitted_than_there_are_slots() {
        let admission = Admission::with_slots(Some(2));
        let slots = [Slot::default(), Slot::default()];
        slots
            .iter()
            .for_each(|it| admission.enter(it, nothing_kept));
        assert!(!admission.try_enter());
        // They keep their slots, and go on with them.
        slots.iter().for_each(|it| admission.leave(it));
        assert!(!admission.try_enter());
        slots
            .iter()
            .for_each(|it| admission.enter(it, nothing_kept));
        admission.give_up(&slots[0]);
        admission.give_up(&slots[0]);
        assert!(admission.try_enter());
        assert!(!admission.try_enter());
    }

    #[test]
    fn a_slot_that_is_kept_is_taken_by_who_needs_one() {
        let admission = Admission::with_slots(Some(1));
        let slots = [Slot::default(), Slot::default()];
        let take_kept = || take_kept_of(&slots);
        for _ in 0..3 {
            for slot in &slots {
                admission.enter(slot, take_kept);
                assert!(!take_kept());
                admission.leave(slot);
                assert_eq!(admission.admitted.load(Relaxed), 1);
            }
        }
        slots.iter().for_each(|it| admission.give_up(it));
        assert_eq!(admission.admitted.load(Relaxed), 0);
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
        let slots: [Slot; 16] = Default::default();
        thread::scope(|scope| {
            for slot in &slots {
                scope.spawn(|| {
                    for round in 0..500 {
                        admission.enter(slot, || take_kept_of(&slots));
                        match round % 3 {
                            0 => admission.give_up(slot),
                            _ => admission.leave(slot),
                        }
                    }
                    admission.give_up(slot);
                });
            }
        });
        assert_eq!(admission.admitted.load(Relaxed), 0);
        assert!(admission.queue.lock().is_empty());
    }

    #[test]
    fn an_idle_admitted_session_does_not_block_others() {
        let admission = Admission::with_slots(Some(1));
        let idle = Slot::default();
        admission.enter(&idle, nothing_kept);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let slot = Slot::default();
                    for _ in 0..20 {
                        admission.enter(&slot, nothing_kept);
                        admission.leave(&slot);
                    }
                    admission.give_up(&slot);
                });
            }
        });
        admission.give_up(&idle);
        assert_eq!(admission.admitted.load(Relaxed), 0);
        // Afterwards there are no more slots than before.
        assert_eq!(admission.limit.load(Relaxed), 1);
    }

    #[test]
    fn a_session_that_keeps_its_slot_and_does_nothing_does_not_block_others() {
        let admission = Admission::with_slots(Some(1));
        let (idle, slot) = (Slot::default(), Slot::default());
        admission.enter(&idle, nothing_kept);
        thread::scope(|scope| {
            // It queues up, because nothing is kept yet, and looks again after each time slice.
            scope.spawn(|| admission.enter(&slot, || idle.take_kept()));
            while admission.queued.load(Acquire) == 0 {
                thread::yield_now();
            }
            admission.is_requested.store(false, Relaxed);
            admission.leave(&idle);
        });
        assert!(!idle.take_kept());
        admission.give_up(&slot);
        assert_eq!(admission.admitted.load(Relaxed), 0);
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let admission = Admission::unlimited();
        let slot = Slot::default();
        for _ in 0..3 {
            admission.enter(&slot, nothing_kept);
        }
        assert_eq!(admission.admitted.load(Relaxed), 0);
        admission.leave(&slot);
        admission.give_up(&slot);
        assert_eq!(admission.admitted.load(Relaxed), 0);
    }
}
