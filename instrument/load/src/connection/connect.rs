//! Connecting and logging in to a server, with a deadline for both.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use concurve_clock::monotonic_ns;
use nix::errno::Errno as OsErrno;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use super::socket::BufferedSocket;
use crate::protocol::{Conversation, Endpoint, Message, Protocol, ProtocolError};
use crate::stop::Stop;

/// Interval between attempts to connect to a Unix socket whose queue is full.
const RETRY_NS: u64 = 10_000_000;

/// How long to wait: until a time, or until the run is stopped.
#[derive(Debug, Clone, Copy)]
pub struct Deadline<'a> {
    stop: &'a Stop,
    /// On CLOCK_MONOTONIC.
    until_ns: u64,
    /// The time from the beginning, for messages.
    timeout_ns: u64,
}

/// Why a connection cannot be used any more.
#[derive(Debug)]
pub enum ConnectionError {
    Io(io::Error),
    Protocol(ProtocolError),
}

impl<'a> Deadline<'a> {
    /// A time from now on.
    pub fn after_ns(timeout_ns: u64, stop: &'a Stop) -> Self {
        Self {
            stop,
            until_ns: monotonic_ns().saturating_add(timeout_ns),
            timeout_ns,
        }
    }

    /// No time limit.
    pub fn never(stop: &'a Stop) -> Self {
        Self::after_ns(u64::MAX, stop)
    }

    /// Waits until a descriptor is ready.
    ///
    /// # Errors
    /// `Interrupted` if the run is stopped, `TimedOut` after the deadline.
    fn wait(&self, descriptor: impl AsFd, wanted: PollFlags) -> io::Result<()> {
        let ns = self.until_ns.saturating_sub(monotonic_ns());
        let timeout = Timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as i64,
        };
        let mut descriptors = [
            PollFd::new(&descriptor, wanted),
            PollFd::new(self.stop, PollFlags::IN),
        ];
        let ready = rustix::event::poll(&mut descriptors, Some(&timeout))?;
        if !descriptors[1].revents().is_empty() {
            return Err(ErrorKind::Interrupted.into());
        }
        match ready {
            0 => Err(self.timed_out()),
            _ => Ok(()),
        }
    }

    /// Waits before the next attempt to connect.
    fn pause(&self) -> io::Result<()> {
        let now = monotonic_ns();
        if now >= self.until_ns {
            return Err(self.timed_out());
        }
        match self.stop.wait_until(now + RETRY_NS) {
            true => Err(ErrorKind::Interrupted.into()),
            false => Ok(()),
        }
    }

    fn timed_out(&self) -> io::Error {
        let text = format!("no answer in {} s", self.timeout_ns as f64 / 1e9);
        io::Error::new(ErrorKind::TimedOut, text)
    }
}

/// Connects to a server and logs in.
///
/// # Errors
/// The server is not there, does not speak the protocol, refuses the log-in or takes too long.
pub fn connect(
    endpoint: &Endpoint,
    protocol: &dyn Protocol,
    deadline: Deadline<'_>,
) -> Result<(BufferedSocket, Box<dyn Conversation>), ConnectionError> {
    let mut socket = match endpoint {
        Endpoint::Tcp { address, .. } => BufferedSocket::tcp(tcp(address, deadline)?)?,
        Endpoint::Unix(path) => BufferedSocket::unix(unix(path, deadline)?),
    };
    let mut conversation = protocol.conversation();
    let mut out = Vec::new();
    if conversation.begin(&mut out) {
        exchange(&mut socket, &mut *conversation, &mut out, deadline)?;
    }
    Ok((socket, conversation))
}

/// Sends `out`, and waits until the conversation is ready or its only request is answered. Leaves
/// nothing in `out`.
///
/// # Errors
/// The connection is lost, the server does not speak the protocol, or the deadline has passed.
pub fn exchange(
    socket: &mut BufferedSocket,
    conversation: &mut dyn Conversation,
    out: &mut Vec<u8>,
    deadline: Deadline<'_>,
) -> Result<Message, ConnectionError> {
    let mut scratch = vec![0; 64 * 1024];
    let is_final = |it: &Message| !matches!(it, Message::Partial | Message::Intermediate);
    let mut message = Message::Partial;
    while !is_final(&message) {
        socket.send(out)?;
        out.clear();
        let mut wanted = PollFlags::IN;
        wanted.set(PollFlags::OUT, socket.has_unsent());
        deadline.wait(&*socket, wanted)?;
        socket.flush()?;
        socket.receive(&mut scratch, |input| {
            let mut used = 0;
            while used < input.len() && !is_final(&message) {
                let received = conversation.receive(&input[used..], out)?;
                used += received.consumed;
                message = received.message;
                if message == Message::Partial {
                    break;
                }
            }
            Ok::<usize, ConnectionError>(used)
        })?;
    }
    Ok(message)
}

fn tcp(address: &SocketAddr, deadline: Deadline<'_>) -> io::Result<TcpStream> {
    let socket = socket(match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    })?;
    match rustix::net::connect(&socket, address) {
        Err(Errno::INPROGRESS) => {
            deadline.wait(&socket, PollFlags::OUT)?;
            sockopt::socket_error(&socket)??;
        }
        connected => connected?,
    }
    Ok(socket.into())
}

fn unix(path: &Path, deadline: Deadline<'_>) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let socket = socket(AddressFamily::UNIX)?;
    // If the backlog is full, connecting fails at once, and no event reports that it has space
    // again.
    while let Err(error) = rustix::net::connect(&socket, &address) {
        match error {
            Errno::AGAIN => deadline.pause()?,
            error => return Err(error.into()),
        }
    }
    Ok(socket.into())
}

fn socket(family: AddressFamily) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    Ok(socket)
}

impl From<io::Error> for ConnectionError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ProtocolError> for ConnectionError {
    fn from(error: ProtocolError) -> Self {
        Self::Protocol(error)
    }
}

/// What to try when a connection cannot be made.
pub fn connect_remedy(error: &io::Error) -> &'static str {
    match error.raw_os_error().map(OsErrno::from_raw) {
        Some(OsErrno::EMFILE | OsErrno::ENFILE) => {
            "raise the limit of open files (ulimit -n), or take fewer --sessions"
        }
        Some(OsErrno::EADDRNOTAVAIL) => {
            "this host has no port left for so many connections: fewer --sessions, or wait until \
            the kernel has released the ports of closed connections"
        }
        Some(OsErrno::EACCES) => "may you use this socket?",
        _ if error.kind() == io::ErrorKind::TimedOut => {
            "is it the right port, and the right protocol in the address? --connect-timeout waits \
             longer"
        }
        _ if error.kind() == io::ErrorKind::UnexpectedEof => {
            "does it take so many clients, and is it the right port?"
        }
        _ => "is the server up?",
    }
}
