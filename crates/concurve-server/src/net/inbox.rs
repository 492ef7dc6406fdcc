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
