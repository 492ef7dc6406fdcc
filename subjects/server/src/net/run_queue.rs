//! Requests that wait for an engine, or for the disk: any of the threads that serve a queue takes
//! what comes next.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use concurve_latch::{Class, Condvar, Mutex};

use crate::error::Error;
use crate::monitor::meter::Meter;
use crate::net::batch::Batch;
use crate::net::idle::Idle;
use crate::net::until::Until;

/// How long one who serves sleeps at most before he looks whether he is to end.
const SLEEP_MAX: Duration = Duration::from_millis(500);

/// A batch and the number of the I/O thread that it came from.
pub type Task = (usize, Batch);

#[derive(Debug)]
pub struct RunQueue {
    tasks: Mutex<VecDeque<Task>>,
    length: AtomicUsize,
    /// Something came, or it is time to look whether all is over.
    changed: Condvar,
    /// Who take from it.
    takers: usize,
}

impl RunQueue {
    /// With latches of this name, for so many who take from it.
    pub fn new(name: &str, takers: usize) -> Self {
        Self {
            tasks: Class::named(name).mutex(VecDeque::new()),
            length: AtomicUsize::new(0),
            changed: Condvar::new(),
            takers,
        }
    }

    pub fn takers(&self) -> usize {
        self.takers
    }

    pub fn send(&self, task: Task) {
        {
            let mut tasks = self.tasks.lock();
            tasks.push_back(task);
            self.length.store(tasks.len(), SeqCst);
        }
        self.changed.notify_one();
    }

    /// Has tasks served as they come, until that ends.
    ///
    /// # Errors
    /// The first one of `work`, which must take all it is given.
    pub fn serve(
        &self,
        idle: Idle,
        meter: &Meter,
        until: &Until,
        mut work: impl FnMut(&mut Vec<Task>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut tasks = Vec::new();
        while !until.is_over() {
            self.take(&mut tasks);
            if !tasks.is_empty() {
                work(&mut tasks)?;
                continue;
            }
            idle.wait(meter, |sleep| {
                if sleep {
                    self.sleep(|| until.is_over(), SLEEP_MAX);
                }
                !self.is_empty()
            });
        }
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.length.load(SeqCst) == 0
    }

    /// Takes a fair share of what there is: all of it for one who is alone.
    pub fn take(&self, into: &mut Vec<Task>) {
        if self.is_empty() {
            return;
        }
        let mut tasks = self.tasks.lock();
        let share = tasks.len().div_ceil(self.takers);
        into.extend(tasks.drain(..share));
        self.length.store(tasks.len(), SeqCst);
    }

    /// Sleeps until something is there, all is over, or this time has passed.
    pub fn sleep(&self, is_over: impl Fn() -> bool, most: Duration) {
        let mut tasks = self.tasks.lock();
        let nothing = |tasks: &mut VecDeque<Task>| tasks.is_empty() && !is_over();
        self.changed.wait_while_for(&mut tasks, nothing, most);
    }

    /// Has all who sleep look whether all is over.
    pub fn nudge(&self) {
        // Under the latch: who has just looked sleeps by then.
        let _tasks = self.tasks.lock();
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

    use super::*;

    const TASKS: u64 = 20_000;
    /// Far longer than a test may take: a wake-up that is lost hangs it.
    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn every_task_is_taken_once_and_no_wake_up_is_lost() {
        let (queue, over) = (RunQueue::new("tasks", 3), AtomicBool::new(false));
        let (sum, count) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut tasks = Vec::new();
                    while !over.load(SeqCst) {
                        queue.take(&mut tasks);
                        if tasks.is_empty() {
                            queue.sleep(|| over.load(SeqCst), LONG);
                        }
                        for (number, _) in tasks.drain(..) {
                            sum.fetch_add(number as u64, Relaxed);
                            if count.fetch_add(1, Relaxed) + 1 == TASKS {
                                over.store(true, SeqCst);
                                queue.nudge();
                            }
                        }
                    }
                });
            }
            for number in 0..TASKS {
                queue.send((number as usize, Batch::default()));
                if number % 64 == 0 {
                    std::thread::yield_now(); // lets engines fall asleep
                }
            }
        });
        assert_eq!(sum.into_inner(), TASKS * (TASKS - 1) / 2);
    }
}
