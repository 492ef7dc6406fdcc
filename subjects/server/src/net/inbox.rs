//! Messages for an I/O thread. A message wakes the thread only if it sleeps.

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
    /// A new client, and its number.
    Connection(TcpStream, u64),
    /// A batch of this I/O thread that was executed.
    Executed(Batch),
    /// The session of the connection with this number, or of an earlier one with the same number,
    /// can continue.
    Called(u32),
    /// Too many clients are connected: the oldest newcomer of this I/O thread is to be closed.
    MakeRoom,
    /// The buffers of all clients are too large, and the largest are probably those of a connection
    /// of this I/O thread.
    FreeMemory,
}

pub type IoInbox = Inbox<Message>;

/// Messages for one receiver, which sleeps in a poller that watches the waker. Engine processes can
/// send to each other, because the waker was opened before they were forked.
#[derive(Debug)]
pub struct Inbox<T> {
    messages: Mutex<Vec<T>>,
    length: AtomicUsize,
    /// One of [`AWAKE`], [`WAITS_FOR_ANY`] and [`WAITS_FOR_URGENT`].
    receiver: AtomicU8,
    waker: Waker,
}

/// States of the receiver: it is awake and will take messages; it sleeps until any message comes;
/// it sleeps until a message comes that is not deferred.
const AWAKE: u8 = 0;
const WAITS_FOR_ANY: u8 = 1;
const WAITS_FOR_URGENT: u8 = 2;

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
    /// the message waits until something else wakes the receiver.
    pub fn send_deferred(&self, message: T) {
        self.push(message);
        let is_woken = self
            .receiver
            .compare_exchange(WAITS_FOR_ANY, AWAKE, SeqCst, SeqCst);
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

    /// Moves all messages to `into`, which must be empty and whose memory is used again.
    pub fn take(&self, into: &mut Vec<T>) {
        if self.is_empty() {
            return;
        }
        let mut messages = self.messages.lock();
        std::mem::swap(&mut *messages, into);
        self.length.store(0, SeqCst);
    }

    /// Sleeps by calling `sleep`, unless a message is there. `wakes_for_any`: a deferred message
    /// ends the sleep, too.
    pub fn sleep_if_empty(&self, wakes_for_any: bool, sleep: impl FnOnce()) {
        // The receiver stores its state before it counts the messages, and a sender adds its
        // message before it reads the state. So either the sender sees the state, or the receiver
        // the message.
        let how = if wakes_for_any {
            WAITS_FOR_ANY
        } else {
            WAITS_FOR_URGENT
        };
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
        for (wakes_for_any, is_deferred) in [(false, false), (true, true)] {
            inbox.sleep_if_empty(wakes_for_any, || {
                inbox.send_deferred(1);
                assert_eq!(is_woken(), is_deferred);
                inbox.send(2);
                assert_eq!(is_woken(), !is_deferred, "once for both");
            });
            inbox.send_deferred(3);
            inbox.sleep_if_empty(wakes_for_any, || panic!("something is there"));
            inbox.take(&mut messages);
            assert_eq!(std::mem::take(&mut messages), [1, 2, 3]);
        }
    }

    const SENDERS: usize = 4;
    const MESSAGES: usize = 20_000;

    /// The receiver sleeps without a time limit: a lost wake-up hangs this test.
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
                            _ => inbox.send_deferred((sender, number)),
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
