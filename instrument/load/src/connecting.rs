//! How connections are made: the socket and the greeting on it, with patience for both.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use concurve_clock::monotonic_ns;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use crate::connection::Connection;
use crate::plan::Server;
use crate::protocol::{Conversation, Message, Protocol, ProtocolError};
use crate::stop::Stop;

/// How often it is tried again whether a Unix socket takes one more.
const AGAIN_NS: u64 = 10_000_000;

/// How long is waited: until some time, and until it is to stop.
#[derive(Debug, Clone, Copy)]
pub struct Patience<'a> {
    stop: &'a Stop,
    /// On CLOCK_MONOTONIC.
    until_ns: u64,
    ns: u64,
}

/// Why a session cannot go on.
#[derive(Debug)]
pub enum Failure {
    Io(io::Error),
    Protocol(ProtocolError),
}

impl<'a> Patience<'a> {
    /// From now on for so long.
    pub fn of_ns(ns: u64, stop: &'a Stop) -> Self {
        Self {
            stop,
            until_ns: monotonic_ns().saturating_add(ns),
            ns,
        }
    }

    pub fn without_end(stop: &'a Stop) -> Self {
        Self::of_ns(u64::MAX, stop)
    }

    /// Waits until a descriptor is ready.
    ///
    /// # Errors
    /// `Interrupted` if it is to stop, `TimedOut` if it took too long.
    fn wait(&self, descriptor: impl AsFd, wanted: PollFlags) -> io::Result<()> {
        let ns = self.until_ns.saturating_sub(monotonic_ns());
        let timeout = Timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as i64,
        };
        let mut waited = [
            PollFd::new(&descriptor, wanted),
            PollFd::new(self.stop, PollFlags::IN),
        ];
        let ready = rustix::event::poll(&mut waited, Some(&timeout))?;
        if !waited[1].revents().is_empty() {
            return Err(ErrorKind::Interrupted.into());
        }
        match ready {
            0 => Err(self.timed_out()),
            _ => Ok(()),
        }
    }

    /// Waits a moment.
    fn pause(&self) -> io::Result<()> {
        let now = monotonic_ns();
        if now >= self.until_ns {
            return Err(self.timed_out());
        }
        match self.stop.by(now + AGAIN_NS) {
            true => Err(ErrorKind::Interrupted.into()),
            false => Ok(()),
        }
    }

    fn timed_out(&self) -> io::Error {
        let text = format!("no answer in {} s", self.ns as f64 / 1e9);
        io::Error::new(ErrorKind::TimedOut, text)
    }
}

/// Connects to a server and greets it.
///
/// # Errors
/// The server is not there, does not speak the protocol, refuses the log-in or takes too long.
pub fn connect(
    server: &Server,
    protocol: &dyn Protocol,
    patience: Patience<'_>,
) -> Result<(Connection, Box<dyn Conversation>), Failure> {
    let mut connection = match server {
        Server::Tcp { address, .. } => Connection::tcp(tcp(address, patience)?)?,
        Server::Unix(path) => Connection::unix(unix(path, patience)?),
    };
    let mut conversation = protocol.conversation();
    let mut out = Vec::new();
    if conversation.greet(&mut out) {
        converse(&mut connection, &mut *conversation, &mut out, patience)?;
    }
    Ok((connection, conversation))
}

/// Sends what the conversation has written, and waits until it says something: that the greeting
/// is done, or the answer to the one trip that was asked for. Leaves nothing in `out`.
///
/// # Errors
/// The connection is lost, the server says what is not understood, or it takes too long.
pub fn converse(
    connection: &mut Connection,
    conversation: &mut dyn Conversation,
    out: &mut Vec<u8>,
    patience: Patience<'_>,
) -> Result<Message, Failure> {
    let mut scratch = vec![0; 64 * 1024];
    let mut said = Message::Partial;
    while matches!(said, Message::Partial | Message::Aside) {
        connection.send(out)?;
        out.clear();
        let mut wanted = PollFlags::IN;
        wanted.set(PollFlags::OUT, connection.has_unsent());
        patience.wait(&*connection, wanted)?;
        connection.flush()?;
        connection.receive(&mut scratch, |input| {
            let mut used = 0;
            while used < input.len() && matches!(said, Message::Partial | Message::Aside) {
                let received = conversation.receive(&input[used..], out)?;
                used += received.consumed;
                said = received.message;
                if said == Message::Partial {
                    break;
                }
            }
            Ok::<usize, Failure>(used)
        })?;
    }
    Ok(said)
}

fn tcp(address: &SocketAddr, patience: Patience<'_>) -> io::Result<TcpStream> {
    let socket = socket(match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    })?;
    match rustix::net::connect(&socket, address) {
        Err(Errno::INPROGRESS) => {
            patience.wait(&socket, PollFlags::OUT)?;
            sockopt::socket_error(&socket)??;
        }
        connected => connected?,
    }
    Ok(socket.into())
}

fn unix(path: &Path, patience: Patience<'_>) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let socket = socket(AddressFamily::UNIX)?;
    // Its queue is full: nothing tells when it no longer is.
    while let Err(error) = rustix::net::connect(&socket, &address) {
        match error {
            Errno::AGAIN => patience.pause()?,
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

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ProtocolError> for Failure {
    fn from(error: ProtocolError) -> Self {
        Self::Protocol(error)
    }
}
