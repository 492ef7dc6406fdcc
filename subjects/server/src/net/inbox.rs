//! Messages for an I/O thread. It is woken only if it sleeps.

use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::SeqCst};

use concurve_latch::{Class, Mutex};

use crate::error::Error;
use crate::net::batch::Batch;
use crate::net::poller::Waker;

/// A message for an I/O thread.
#[derive(Debug)]
pub enum Message {
    /// A client, and its number.
    Connection(TcpStream, u64),
    /// A batch of its own that was executed.
    Executed(Batch),
    /// The session of this connection can go on; or of an earlier one that had its number.
    Called(u32),
}

pub type IoInbox = Inbox<Message>;

/// Messages for one receiver, which sleeps in a poller that watches the waker. Engines that are
/// processes send to each other too: the waker was opened before they were forked.
#[derive(Debug)]
pub struct Inbox<T> {
    messages: Mutex<Vec<T>>,
    length: AtomicUsize,
    /// One of [`AWAKE`], [`DOZES`] and [`SLEEPS`].
    receiver: AtomicU8,
    waker: Waker,
}

/// States of the receiver: it takes messages by itself; it sleeps until any message comes; it sleeps
/// until a message comes that was sent to wake it.
const AWAKE: u8 = 0;
const DOZES: u8 = 1;
const SLEEPS: u8 = 2;

impl<T> Inbox<T> {
    pub fn new() -> Result<Arc<Self>, Error> {
        let waker = Waker::new().map_err(Error::io("open an eventfd"))?;
        Ok(Arc::new(Self {
            messages: Class::named("inbox").mutex(Vec::new()),
            length: AtomicUsize::new(0),
            receiver: AtomicU8::new(AWAKE),
            waker,
        }))
    }

    /// Adds a message, and wakes the receiver.
    pub fn send(&self, message: T) {
        self.push(message);
        if self.receiver.swap(AWAKE, SeqCst) != AWAKE {
            self.waker.wake();
        }
    }

    /// Adds a message, and wakes the receiver only if it sleeps until any message comes. Otherwise
    /// the message may wait until something else wakes it.
    pub fn leave(&self, message: T) {
        self.push(message);
        let is_woken = self.receiver.compare_exchange(DOZES, AWAKE, SeqCst, SeqCst);
        if is_woken.is_ok() {
            self.waker.wake();
        }
    }

    /// Whether the receiver would have to be woken.
    pub fn sleeps(&self) -> bool {
        self.receiver.load(SeqCst) != AWAKE
    }

    fn push(&self, message: T) {
        let mut messages = self.messages.lock();
        messages.push(message);
        self.length.store(messages.len(), SeqCst);
    }

    pub fn is_empty(&self) -> bool {
        self.length.load(SeqCst) == 0
    }

    /// Takes all messages; `into` must be empty and lends its memory.
    pub fn take(&self, into: &mut Vec<T>) {
        if self.is_empty() {
            return;
        }
        let mut messages = self.messages.lock();
        std::mem::swap(&mut *messages, into);
        self.length.store(0, SeqCst);
    }

    /// Sleeps by calling `sleep`, unless a message is there. `lightly`: until any message comes, even
    /// one that was only left.
    pub fn sleep_if_empty(&self, lightly: bool, sleep: impl FnOnce()) {
        // The state is stored before the messages are counted; a sender does it the other way round.
        // So either it sees the state, or the receiver sees its message.
        let how = if lightly { DOZES } else { SLEEPS };
        self.receiver.store(how, SeqCst);
        if self.is_empty() {
            sleep();
        }
        self.receiver.store(AWAKE, SeqCst);
    }
}

impl<T> AsFd for Inbox<T> {
    /// Becomes readable when the receiver is to be woken.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::net::poller::{Events, Poller};

    #[test]
    fn a_message_that_is_only_left_wakes_no_receiver_that_waits_for_more() {
        let inbox = Inbox::new().unwrap();
        let (poller, mut events) = (Poller::new().unwrap(), Events::default());
        poller.watch_waker(&*inbox).unwrap();
        let mut is_woken = || {
            poller.wait(&mut events, Some(Duration::ZERO)).unwrap();
            !events.is_empty()
        };
        let mut messages = Vec::new();
        for (lightly, by_left) in [(false, false), (true, true)] {
            inbox.sleep_if_empty(lightly, || {
                inbox.leave(1);
                assert_eq!(is_woken(), by_left);
                inbox.send(2);
                assert_eq!(is_woken(), !by_left, "once for both");
            });
            inbox.leave(3);
            inbox.sleep_if_empty(lightly, || panic!("something is there"));
            inbox.take(&mut messages);
            assert_eq!(std::mem::take(&mut messages), [1, 2, 3]);
        }
    }

    const SENDERS: usize = 4;
    const MESSAGES: usize = 20_000;

    /// The receiver sleeps without a time limit: a wake-up that is lost hangs this test.
    #[test]
    fn every_message_arrives_and_no_wake_up_is_lost() {
        let inbox = Inbox::new().unwrap();
        let (poller, mut events) = (Poller::new().unwrap(), Events::default());
        poller.watch_waker(&*inbox).unwrap();
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                let inbox = Arc::clone(&inbox);
                std::thread::spawn(move || {
                    for number in 0..MESSAGES {
                        match number % 3 {
                            0 => inbox.send((sender, number)),
                            _ => inbox.leave((sender, number)),
                        }
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
                inbox.sleep_if_empty(true, || poller.wait(&mut events, None).unwrap());
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
