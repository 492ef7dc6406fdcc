//! Waiting for a condition.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::futex;
use crate::mutex::MutexGuard;

/// Where threads sleep until somebody says that a condition may have changed. Eight bytes.
///
/// It may wake for nothing: look at the condition again. Who changes it must hold the mutex while
/// he does, or have held it since.
#[derive(Debug, Default)]
pub struct Condvar {
    /// Changes with each notice.
    notices: AtomicU32,
    /// Who sleeps, or is about to. One who was killed in his sleep is counted for ever, which costs
    /// system calls and nothing else.
    waiters: AtomicU32,
}

impl Condvar {
    pub const fn new() -> Self {
        Self {
            notices: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
        }
    }

    /// Gives the mutex back, sleeps, and takes it again.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        self.sleep(guard, Duration::MAX);
    }

    /// Waits while the condition holds.
    pub fn wait_while<T>(&self, guard: &mut MutexGuard<'_, T>, condition: impl Fn(&mut T) -> bool) {
        while condition(guard) {
            self.wait(guard);
        }
    }

    /// Waits while the condition holds, and not longer than this. Whether it still holds.
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
        // Under the mutex: who changes the condition later finds both.
        self.waiters.fetch_add(1, Relaxed);
        let notices = self.notices.load(Relaxed);
        MutexGuard::unlocked(guard, || futex::sleep(&self.notices, notices, time));
        self.waiters.fetch_sub(1, Relaxed);
    }

    /// Wakes one who waits.
    pub fn notify_one(&self) {
        if self.waiters.load(Relaxed) > 0 {
            self.notices.fetch_add(1, Relaxed);
            futex::wake_one(&self.notices);
        }
    }

    /// Wakes all who wait.
    pub fn notify_all(&self) {
        if self.waiters.load(Relaxed) > 0 {
            self.notices.fetch_add(1, Relaxed);
            futex::wake_all(&self.notices);
        }
    }
}
