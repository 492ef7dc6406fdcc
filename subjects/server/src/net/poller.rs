//! Lets a thread sleep until a socket is ready, or another thread wakes it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;

/// Maximum number of events that one call returns; the next call returns the others.
const EVENTS: usize = 1024;

/// Numbers that no client has: of wakers, and of descriptors from which clients are accepted.
const WAKER: u32 = u32::MAX;
const CLIENTS: u32 = u32::MAX - 1;

/// An edge-triggered epoll: it reports every change once. When it reports a socket as readable, the
/// caller must read until the socket would block or returns fewer bytes than requested; when it
/// reports the end, until the end.
#[derive(Debug)]
pub struct Poller(OwnedFd);

/// The events that a [`Poller`] has found.
pub struct Events(Vec<epoll::Event>);

/// An event of a client's socket.
#[derive(Debug, Clone, Copy)]
pub struct Ready {
    pub number: u32,
    /// The socket has bytes to read, or its end or an error is to be read.
    pub readable: bool,
    /// Its end or an error, perhaps after bytes; no further event follows.
    pub ended: bool,
    pub writable: bool,
}

/// Wakes the thread that sleeps in a [`Poller`] that watches it; also from another process if it
/// was opened before the fork.
#[derive(Debug)]
pub struct Waker(OwnedFd);

impl Waker {
    pub fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self(eventfd(0, flags)?))
    }

    pub fn wake(&self) {
        // It fails only if the counter is full, after 2⁶⁴ wake-ups.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Poller {
    pub fn new() -> io::Result<Self> {
        Ok(Self(epoll::create(CreateFlags::CLOEXEC)?))
    }

    /// Watches a [`Waker`], or another descriptor that becomes readable only to wake.
    pub fn watch_waker(&self, waker: impl AsFd) -> io::Result<()> {
        // Each write is reported once, independent of the counter, which therefore is never read.
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&self.0, waker, EventData::new_u64(WAKER.into()), flags)?;
        Ok(())
    }

    /// Watches a descriptor from which clients are accepted. If several pollers watch it, one of
    /// them is woken for a client, and again as long as clients are left.
    pub fn watch_clients(&self, from: impl AsFd) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::EXCLUSIVE;
        epoll::add(&self.0, from, EventData::new_u64(CLIENTS.into()), flags)?;
        Ok(())
    }

    /// Watches a socket until it is closed.
    pub fn watch(&self, socket: impl AsFd, number: u32) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.0, socket, EventData::new_u64(number.into()), flags)?;
        Ok(())
    }

    /// Sleeps until there is an event, at most this long.
    pub fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
        events.0.clear();
        let timeout = timeout.map(|it| Timespec {
            tv_sec: it.as_secs() as i64,
            tv_nsec: it.subsec_nanos().into(),
        });
        let into = spare_capacity(&mut events.0);
        match epoll::wait(&self.0, into, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Default for Events {
    fn default() -> Self {
        Self(Vec::with_capacity(EVENTS))
    }
}

impl Events {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether clients can be accepted.
    pub fn clients_came(&self) -> bool {
        let mut numbers = self.0.iter().map(|it| it.data.u64() as u32);
        numbers.any(|it| it == CLIENTS)
    }

    /// The sockets of clients among them.
    pub fn ready(&self) -> impl Iterator<Item = Ready> {
        let sockets = self.0.iter().map(|event| {
            let (flags, data) = (event.flags, event.data);
            Ready {
                number: data.u64() as u32,
                readable: flags.intersects(!EventFlags::OUT),
                ended: flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR),
                writable: flags.contains(EventFlags::OUT),
            }
        });
        sockets.filter(|it| it.number < CLIENTS)
    }
}
