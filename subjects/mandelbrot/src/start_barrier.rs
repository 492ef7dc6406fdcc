//! A reusable barrier at which the workers wait for a computation to start and the main thread
//! for it to end.
//!
//! `std::sync::Barrier` is not sufficient: the main thread must know that all workers wait *before*
//! it starts the clock, must be able to end the workers that were created, and must be notified of a
//! panic. A futex releases the workers without a lock: with a condition variable, hundreds of woken
//! threads would take its mutex one after the other while CPUs are idle.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

#[derive(Debug, Default)]
pub(crate) struct StartBarrier {
    /// How often the barrier was opened; the futex on which workers sleep.
    round: AtomicU32,
    closed: AtomicBool,
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Workers that wait at the barrier.
    waiting: usize,
    /// The number of waiting workers at which the main thread is woken, once instead of for each.
    wanted: usize,
    /// A worker has panicked.
    worker_died: bool,
}

impl StartBarrier {
    /// Waits until the barrier opens once more; false if it was closed and the worker is to end.
    pub fn enter(&self) -> bool {
        let round = self.round.load(Ordering::Acquire);
        self.arrive();
        while self.round.load(Ordering::Acquire) == round && !self.is_closed() {
            atomic_wait::wait(&self.round, round);
        }
        !self.is_closed()
    }

    fn arrive(&self) {
        let mut state = self.lock();
        state.waiting += 1;
        if state.waiting == state.wanted {
            self.arrived.notify_one();
        }
    }

    /// Waits until `workers` workers wait at the barrier; false if one of them has panicked.
    pub fn wait_for(&self, workers: usize) -> bool {
        let mut state = self.lock();
        state.wanted = workers;
        while state.waiting < workers && !state.worker_died {
            state = self.arrived.wait(state).expect("see lock");
        }
        !state.worker_died
    }

    /// Releases all workers; all of them must be waiting.
    pub fn open(&self) {
        self.lock().waiting = 0;
        self.wake_all();
    }

    /// Ends all workers.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.wake_all();
    }

    /// Tells the main thread that a worker has panicked.
    pub fn worker_died(&self) {
        self.lock().worker_died = true;
        self.arrived.notify_one();
    }

    fn wake_all(&self) {
        self.round.fetch_add(1, Ordering::Release);
        atomic_wait::wake_all(&self.round);
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics under this lock")
    }
}
