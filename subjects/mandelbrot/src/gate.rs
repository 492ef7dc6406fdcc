//! Where the workers wait for a computation to start and the main thread for it to end.
//!
//! Not `std::sync::Barrier`: the main thread must know that all are waiting *before* it starts
//! the clock, must be able to send a part of the crew home, and must learn of a panic. And the
//! workers must not need a lock to get through: behind a condition variable each of hundreds
//! would wait for the mutex in turn, and late ones would leave a CPU idle.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Times the gate was opened; workers sleep on it.
    round: AtomicU32,
    closed: AtomicBool,
    attendance: Mutex<Attendance>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct Attendance {
    /// Workers that wait at the gate.
    waiting: usize,
    /// The main thread wants to be woken when so many do, and not for each of hundreds.
    wanted: usize,
    /// A worker died.
    broken: bool,
}

impl Gate {
    /// Waits for the gate to open once more; false: go home.
    pub fn enter(&self) -> bool {
        let round = self.round.load(Ordering::Acquire);
        self.arrive();
        while self.round.load(Ordering::Acquire) == round && !self.is_closed() {
            atomic_wait::wait(&self.round, round);
        }
        !self.is_closed()
    }

    fn arrive(&self) {
        let mut attendance = self.lock();
        attendance.waiting += 1;
        if attendance.waiting == attendance.wanted {
            self.arrived.notify_one();
        }
    }

    /// Waits until `workers` workers stand at the gate; false: one of them died.
    pub fn wait_for(&self, workers: usize) -> bool {
        let mut attendance = self.lock();
        attendance.wanted = workers;
        while attendance.waiting < workers && !attendance.broken {
            attendance = self.arrived.wait(attendance).expect("see lock");
        }
        !attendance.broken
    }

    /// Lets all through who wait; all of the crew must.
    pub fn open(&self) {
        self.lock().waiting = 0;
        self.wake_all();
    }

    /// Sends everybody home.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.wake_all();
    }

    /// Reports a death.
    pub fn break_down(&self) {
        self.lock().broken = true;
        self.arrived.notify_one();
    }

    fn wake_all(&self) {
        self.round.fetch_add(1, Ordering::Release);
        atomic_wait::wake_all(&self.round);
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Attendance> {
        self.attendance
            .lock()
            .expect("nothing panics under this lock")
    }
}
