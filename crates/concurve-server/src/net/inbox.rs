//! What one thread hands to another. The receiver is woken only if it sleeps.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use crate::hall::POISONED;
use crate::net::poller::Waker;

/// How a sleeping receiver is woken.
pub trait Wake: Send + Sync {
    fn wake(&self);
}

/// I/O threads sleep in their poller.
impl Wake for Waker {
    fn wake(&self) {
        Waker::wake(self);
    }
}

/// The worker parks.
impl Wake for std::thread::Thread {
    fn wake(&self) {
        self.unpark();
    }
}

#[derive(Debug)]
pub struct Inbox<T, W> {
    messages: Mutex<Vec<T>>,
    length: AtomicUsize,
    asleep: AtomicBool,
    receiver: W,
}

impl<T, W: Wake> Inbox<T, W> {
    pub fn new(receiver: W) -> Self {
        Self {
            messages: Mutex::new(Vec::new()),
            length: AtomicUsize::new(0),
            asleep: AtomicBool::new(false),
            receiver,
        }
    }

    pub fn send(&self, message: T) {
        {
            let mut messages = self.messages.lock().expect(POISONED);
            messages.push(message);
            self.length.store(messages.len(), SeqCst);
        }
        if self.asleep.swap(false, SeqCst) {
            self.receiver.wake();
        }
    }

    /// Wakes the receiver without a message: something else has changed.
    pub fn nudge(&self) {
        self.receiver.wake();
    }

    pub fn is_empty(&self) -> bool {
        self.length.load(SeqCst) == 0
    }

    /// Takes all messages; `into` must be empty and lends its memory.
    pub fn take(&self, into: &mut Vec<T>) {
        if self.is_empty() {
            return;
        }
        let mut messages = self.messages.lock().expect(POISONED);
        std::mem::swap(&mut *messages, into);
        self.length.store(0, SeqCst);
    }

    /// Sleeps by calling `sleep`, unless a message is there. The receiver must look at what else
    /// it waits for after a nudge.
    pub fn sleep_if_empty(&self, sleep: impl FnOnce()) {
        // The flag first, then the look: a sender does the same in the other order, so either it
        // sees the flag or we see its message.
        self.asleep.store(true, SeqCst);
        if self.is_empty() {
            sleep();
        }
        self.asleep.store(false, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const SENDERS: usize = 4;
    const MESSAGES: usize = 20_000;

    /// The receiver sleeps without a time limit: a wake-up that is lost hangs this test.
    #[test]
    fn every_message_arrives_and_no_wake_up_is_lost() {
        let inbox = Arc::new(Inbox::new(std::thread::current()));
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let inbox = Arc::clone(&inbox);
                std::thread::spawn(move || {
                    for number in 0..MESSAGES {
                        inbox.send((sender, number));
                        if number % 64 == 0 {
                            std::thread::yield_now(); // lets the receiver fall asleep
                        }
                    }
                })
            })
            .collect();
        let (mut next, mut messages) = ([0; SENDERS], Vec::new());
        while next != [MESSAGES; SENDERS] {
            inbox.take(&mut messages);
            if messages.is_empty() {
                inbox.sleep_if_empty(std::thread::park);
            }
            for (sender, number) in messages.drain(..) {
                assert_eq!(number, next[sender], "in order");
                next[sender] += 1;
            }
        }
        for sender in senders {
            sender.join().unwrap();
        }
    }
}
