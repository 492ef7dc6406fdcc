//! Where a thread sleeps until a socket has something for it, or another thread wakes it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;

/// Events taken by one call; there are more after the next.
const EVENTS: usize = 1024;

/// The number of the eventfd; no socket is given it.
const WAKER: u32 = u32::MAX;

/// An epoll. Every change is told once: who was told that a socket is readable must read until it
/// would block, or got fewer bytes than asked for; and if it was told the end, until it meets that.
#[derive(Debug)]
pub struct Poller(OwnedFd);

/// What a [`Poller`] has found; of the thread that waits.
pub struct Events(Vec<epoll::Event>);

/// A socket about which something was told.
#[derive(Debug, Clone, Copy)]
pub struct Ready {
    pub number: u32,
    /// It has bytes, its end, or an error.
    pub readable: bool,
    /// Its end or an error, perhaps behind bytes; nothing more will be told.
    pub ended: bool,
    pub writable: bool,
}

/// Wakes the thread that sleeps in a [`Poller`].
#[derive(Debug)]
pub struct Waker(OwnedFd);

impl Waker {
    pub fn wake(&self) {
        // It fails only if the count is at its end, and then the sleeper was woken 2⁶⁴ times.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

impl Poller {
    pub fn new() -> io::Result<(Self, Waker)> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // Each write is told once, whatever the count is: it never has to be read.
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &waker, EventData::new_u64(WAKER.into()), flags)?;
        Ok((Self(epoll), Waker(waker)))
    }

    /// Watches a socket until it is closed.
    pub fn watch(&self, socket: impl AsFd, number: u32) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.0, socket, EventData::new_u64(number.into()), flags)?;
        Ok(())
    }

    /// Sleeps until there is something, at most this long.
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

    /// The sockets among them.
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
        sockets.filter(|it| it.number != WAKER)
    }
}
