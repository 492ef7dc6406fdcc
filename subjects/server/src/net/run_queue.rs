//! Batches that wait for an engine or for the disk thread. Every thread of a queue takes the next
//! batches.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use concurve_latch::{Class, Condvar, Mutex};

use crate::net::batch::Batch;

/// A queue of batches.
#[derive(Debug)]
pub struct RunQueue {
    batches: Mutex<VecDeque<Batch>>,
    length: AtomicUsize,
    /// A batch was added, or the server ends.
    changed: Condvar,
    /// Number of threads that take from the queue.
    takers: usize,
}

impl RunQueue {
    /// A queue with latches of this class, from which so many threads take.
    pub fn new(name: &str, takers: usize) -> Self {
        Self {
            batches: Class::named(name).mutex(VecDeque::new()),
            length: AtomicUsize::new(0),
            changed: Condvar::new(),
            takers,
        }
    }

    pub fn takers(&self) -> usize {
        self.takers
    }

    pub fn send(&self, batch: Batch) {
        {
            let mut batches = self.batches.lock();
            batches.push_back(batch);
            self.length.store(batches.len(), SeqCst);
        }
        self.changed.notify_one();
    }

    pub fn is_empty(&self) -> bool {
        self.length.load(SeqCst) == 0
    }

    /// Takes a fair share of the batches; all of them if only one thread takes from the queue.
    pub fn take(&self, into: &mut Vec<Batch>) {
        if self.is_empty() {
            return;
        }
        let mut batches = self.batches.lock();
        let share = batches.len().div_ceil(self.takers);
        into.extend(batches.drain(..share));
        self.length.store(batches.len(), SeqCst);
    }

    /// Sleeps until there is a batch, the server ends, or this time has passed.
    pub fn sleep(&self, is_over: impl Fn() -> bool, most: Duration) {
        let mut batches = self.batches.lock();
        let nothing = |batches: &mut VecDeque<Batch>| batches.is_empty() && !is_over();
        self.changed.wait_while_for(&mut batches, nothing, most);
    }

    /// Wakes all sleeping threads, so that they notice that the server is stopping.
    pub fn wake_all(&self) {
        // Under the latch: a thread that has just found the queue empty is asleep, and is woken.
        let _batches = self.batches.lock();
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

    use super::*;

    const BATCHES: u64 = 20_000;
    /// Far longer than a test may take: a lost wake-up hangs it.
    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn every_batch_is_taken_once_and_no_wake_up_is_lost() {
        let (queue, over) = (RunQueue::new("batches", 3), AtomicBool::new(false));
        let (sum, count) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut batches = Vec::new();
                    while !over.load(SeqCst) {
                        queue.take(&mut batches);
                        if batches.is_empty() {
                            queue.sleep(|| over.load(SeqCst), LONG);
                        }
                        for batch in batches.drain(..) {
                            sum.fetch_add(batch.io_thread as u64, Relaxed);
                            if count.fetch_add(1, Relaxed) + 1 == BATCHES {
                                over.store(true, SeqCst);
                                queue.wake_all();
                            }
                        }
                    }
                });
            }
            for number in 0..BATCHES {
                queue.send(Batch::of(number as usize));
                if number % 64 == 0 {
                    std::thread::yield_now(); // lets engines fall asleep
                }
            }
        });
        assert_eq!(sum.into_inner(), BATCHES * (BATCHES - 1) / 2);
    }
}
