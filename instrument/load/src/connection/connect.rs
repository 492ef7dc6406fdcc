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
use crate::protocol::{Addresses, Conversation, Endpoint, Message, Protocol, ProtocolError};
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

    /// For one of so many attempts that are left: an equal part of the time.
    fn of_attempts(self, left: usize) -> Self {
        let now = monotonic_ns();
        let part_ns = self.until_ns.saturating_sub(now) / left as u64;
        Self {
            until_ns: now + part_ns,
            ..self
        }
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
        Endpoint::Tcp { addresses, .. } => BufferedSocket::tcp(any_of(addresses, deadline)?)?,
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

/// Connects to the first address that takes the connection.
///
/// # Errors
/// None does: why the last one does not.
fn any_of(addresses: &Addresses, deadline: Deadline<'_>) -> io::Result<TcpStream> {
    let mut failed = io::Error::from(ErrorKind::AddrNotAvailable);
    let to_try = addresses.to_try();
    for (number, address) in to_try.iter().enumerate() {
        match tcp(address, deadline.of_attempts(to_try.len() - number)) {
            Ok(stream) => {
                return match addresses.choose(*address) {
                    chosen if chosen == *address => Ok(stream),
                    // Another thread has found another one meanwhile.
                    chosen => tcp(&chosen, deadline),
                };
            }
            Err(_) if deadline.stop.is_set() => return Err(ErrorKind::Interrupted.into()),
            Err(error) => failed = error,
        }
    }
    Err(failed)
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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::protocol::NamedProtocol;

    /// Where nobody listens.
    fn closed() -> SocketAddr {
        ([127, 0, 0, 1], 1).into()
    }

    fn connected(addresses: &Addresses) -> Result<(), ConnectionError> {
        let endpoint = Endpoint::Tcp {
            name: "both:1".to_owned(),
            addresses: addresses.clone(),
        };
        let (_, protocol) = NamedProtocol::parse("127.0.0.1:1").unwrap().unwrap();
        let stop = Stop::new().unwrap();
        let deadline = Deadline::after_ns(60_000_000_000, &stop);
        connect(&endpoint, &*protocol.protocol(&[]), deadline).map(drop)
    }

    #[test]
    fn all_connections_go_to_the_first_address_that_takes_one() {
        let listeners = [(), ()].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [second, third] = listeners.each_ref().map(|it| it.local_addr().unwrap());
        let addresses = Addresses::new(vec![closed(), second, third]);
        connected(&addresses).unwrap();
        assert_eq!(addresses.to_try(), [second]);
        connected(&addresses).unwrap();
        drop(listeners);
        assert!(connected(&addresses).is_err(), "the server is gone");
    }

    #[test]
    fn each_attempt_has_its_part_of_the_time() {
        let stop = Stop::new().unwrap();
        let deadline = Deadline::after_ns(60_000_000_000, &stop);
        let first = deadline.of_attempts(3);
        let left_ns = deadline.until_ns - first.until_ns;
        assert!(
            (30_000_000_000..=40_000_000_000).contains(&left_ns),
            "{left_ns}"
        );
        assert!(deadline.of_attempts(1).until_ns <= deadline.until_ns);
        let refused = any_of(&Addresses::new(vec![closed(), closed()]), deadline);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }
}
