//! Waiting for a condition to change.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::mutex::MutexGuard;
use crate::waiting;

/// A condition variable: threads sleep until another one notifies them. Eight bytes.
///
/// Wake-ups may be spurious: check the condition again. The thread that changes the condition must
/// hold the mutex while it does, or take it before it notifies.
#[derive(Debug, Default)]
pub struct Condvar {
    /// Changes with each notification.
    notifications: AtomicU32,
    /// Threads that sleep, or are about to. One that was killed in its sleep is counted for ever,
    /// which costs system calls and nothing else.
    waiters: AtomicU32,
}

impl Condvar {
    pub const fn new() -> Self {
        Self {
            notifications: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
        }
    }

    /// Releases the mutex, sleeps, and takes it again.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        self.sleep(guard, Duration::MAX);
    }

    /// Waits while the condition holds.
    pub fn wait_while<T>(&self, guard: &mut MutexGuard<'_, T>, condition: impl Fn(&mut T) -> bool) {
        while condition(guard) {
            self.wait(guard);
        }
    }

    /// Waits while the condition holds, for `time` at most. Returns whether it still holds.
    pub fn wait_while_for<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: impl Fn(&mut T) -> bool,
        time: Duration,
    ) -> bool {
        let begin = Instant::now();
        while condition(guard) {
            let left = time.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return true;
            }
            self.sleep(guard, left);
        }
        false
    }

    fn sleep<T>(&self, guard: &mut MutexGuard<'_, T>, time: Duration) {
        // Under the mutex: a thread that changes the condition later sees both.
        self.waiters.fetch_add(1, Relaxed);
        let notifications = self.notifications.load(Relaxed);
        MutexGuard::unlocked(guard, || {
            waiting::sleep(&self.notifications, notifications, time)
        });
        self.waiters.fetch_sub(1, Relaxed);
    }

    /// Wakes one waiting thread.
    pub fn notify_one(&self) {
        if self.waiters.load(Relaxed) > 0 {
            self.notifications.fetch_add(1, Relaxed);
            waiting::wake_one(&self.notifications);
        }
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        if self.waiters.load(Relaxed) > 0 {
            self.notifications.fetch_add(1, Relaxed);
            waiting::wake_all(&self.notifications);
        }
    }
}
