//! The connection of one client: its buffers and its state.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::net::batch::{Batch, Returned};
use crate::net::incidents::Incident;
use crate::net::poller::Ready;
use crate::net::transfer::{receive, transmit};
use crate::options::{ConnectionLimits, Replies, ServerOptions};
use crate::request::Flow;
use crate::resp::parser::{Parser, ProtocolError};
use crate::resp::writer::{Version, Writer};
use crate::session::Session;
use crate::source::Source;

/// First and longest pause between two attempts to take a lock for which a request waits.
const RETRY_MIN: Duration = Duration::from_millis(1);
const RETRY_MAX: Duration = Duration::from_millis(64);
/// The same for a parked request, which is woken when its lock is granted: an attempt before that
/// only checks for a deadlock.
const PARKED_MIN: Duration = Duration::from_millis(10);
const PARKED_MAX: Duration = Duration::from_secs(1);
/// The same for a password that is not tried yet, because its source has sent many wrong ones.
const LOGIN_MIN: Duration = Duration::from_millis(50);
const LOGIN_MAX: Duration = Duration::from_secs(1);

/// Size of the buffer that an idle connection may keep for each direction.
const KEPT_BYTES_MAX: usize = 16 * 1024;

/// A connection of an I/O thread.
#[derive(Debug)]
pub struct ClientConnection {
    /// The number of its client.
    id: u64,
    source: Source,
    since: Instant,
    /// Its login is counted: known since its session came back.
    is_logged_in: bool,
    /// Its client has logged in, wherever its session is.
    login: Arc<AtomicBool>,
    stream: Arc<TcpStream>,
    session: SessionPlace,
    parser: Parser,
    input: Vec<u8>,
    incoming: Incoming,
    /// Bytes of the requests that are in a batch.
    submitted: usize,
    /// Whole requests may be left in `input`.
    has_unparsed: bool,
    output: Vec<u8>,
    /// Bytes of `output` that were written.
    written: usize,
    /// The socket may accept more bytes.
    is_writable: bool,
    phase: Phase,
    /// When to try again to take the lock for which its request waits, and the pause after that.
    pub retry_at: Option<Instant>,
    retry: Duration,
    /// When a request was last begun or completed, or a reply was taken.
    progress: Instant,
    /// Bytes in its buffers when they were last counted.
    counted: usize,
}

/// Where the session of a connection is.
#[derive(Debug)]
enum SessionPlace {
    Here(Box<Session>),
    /// In a batch.
    Away {
        /// The session was woken: its request can continue.
        is_called: bool,
        /// The connection has work to do as soon as the session is back.
        is_awaited: bool,
    },
}

/// What may be read from the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Incoming {
    /// Nothing, until an event says so.
    Nothing,
    /// More bytes.
    Bytes,
    /// Its end or an error, perhaps after bytes.
    End,
    /// Nothing: the end was read.
    Ended,
}

/// The phases of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// The last reply is in the output.
    Closing,
    /// The socket failed, or a limit was exceeded: nothing more can be written.
    Broken,
}

impl ClientConnection {
    pub fn new(stream: TcpStream, session: Box<Session>, now: Instant) -> Self {
        Self {
            id: session.id,
            source: session.source,
            since: now,
            is_logged_in: session.authenticated,
            login: session.login(),
            stream: Arc::new(stream),
            session: SessionPlace::Here(session),
            parser: Parser::default(),
            input: Vec::new(),
            incoming: Incoming::Bytes,
            submitted: 0,
            has_unparsed: false,
            output: Vec::new(),
            written: 0,
            is_writable: true,
            phase: Phase::Open,
            retry_at: None,
            retry: RETRY_MIN,
            progress: now,
            counted: 0,
        }
    }

    /// The number of its client.
    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn source(&self) -> Source {
        self.source
    }

    pub fn is_logged_in(&self) -> bool {
        self.is_logged_in
    }

    /// Whether its client has logged in, also while its session has not come back yet.
    fn has_logged_in(&self) -> bool {
        self.is_logged_in || self.login.load(Relaxed)
    }

    /// Whether it could make room for another client: it has not logged in, and is not ending.
    pub fn is_newcomer(&self) -> bool {
        !self.has_logged_in() && self.phase != Phase::Broken
    }

    /// The limits that hold for it now.
    pub fn limits<'a>(&self, options: &'a ServerOptions) -> &'a ConnectionLimits {
        match self.has_logged_in() {
            true => &options.limits,
            false => &options.login.limits,
        }
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Notes an event of the socket.
    pub fn note(&mut self, ready: Ready) {
        self.incoming = match self.incoming {
            Incoming::Ended | Incoming::End => self.incoming,
            _ if ready.ended => Incoming::End,
            Incoming::Nothing if ready.readable => Incoming::Bytes,
            Incoming::Nothing | Incoming::Bytes => self.incoming,
        };
        self.is_writable |= ready.writable;
    }

    /// Nothing can be read or written any more.
    pub fn set_broken(&mut self) {
        self.phase = Phase::Broken;
        (self.output, self.written) = (Vec::new(), 0);
    }

    pub fn is_broken(&self) -> bool {
        self.phase == Phase::Broken
    }

    /// Says why the server ends the connection, if the client can be told now.
    pub fn dismiss(&mut self, incident: Incident) {
        let why: &[u8] = match incident {
            Incident::LoginTimeout => b"-NOAUTH no login in time (--login-timeout-s)\r\n",
            Incident::Displaced => b"-NOAUTH no login so far, and others wait (--clients-max)\r\n",
            _ => b"",
        };
        let can_write = self.has_session() && self.is_writable && self.unwritten() == 0;
        if can_write && !why.is_empty() {
            let _ = transmit(&self.stream, why);
        }
        self.set_broken();
    }

    /// Bytes in its buffers: of requests that are not executed, and of replies that are not read.
    pub fn buffered(&self) -> usize {
        self.input.len() + self.output.len()
    }

    /// Counts the bytes in its buffers again; returns by how many they have grown. Those of a
    /// connection that is ending do not count.
    pub fn count_buffered(&mut self) -> i64 {
        let buffered = match self.is_broken() {
            true => 0,
            false => self.buffered(),
        };
        let before = std::mem::replace(&mut self.counted, buffered);
        buffered as i64 - before as i64
    }

    /// Reads once, if the input has less than the longest request.
    pub fn read(&mut self, scratch: &mut [u8], limits: &ConnectionLimits, now: Instant) {
        if !self.can_read(limits) {
            return;
        }
        let most = limits.read_bytes_max.min(scratch.len());
        let scratch = &mut scratch[..most];
        match receive(&self.stream, scratch) {
            Ok(0) => {
                self.incoming = Incoming::Ended;
                if self.retry_at.is_some() {
                    // The client has closed the connection while its request waits for a lock.
                    self.set_broken();
                }
            }
            Ok(bytes) => {
                // Fewer bytes than requested: the next event reports when there are more. After the
                // end was reported there is no further event: reading continues until it.
                if bytes < scratch.len() && self.incoming == Incoming::Bytes {
                    self.incoming = Incoming::Nothing;
                }
                if self.input.is_empty() {
                    self.progress = now;
                }
                self.input.extend_from_slice(&scratch[..bytes]);
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => self.incoming = Incoming::Nothing,
                ErrorKind::Interrupted => {}
                _ => self.set_broken(),
            },
        }
    }

    fn can_read(&self, limits: &ConnectionLimits) -> bool {
        self.phase != Phase::Broken
            && matches!(self.incoming, Incoming::Bytes | Incoming::End)
            && self.input.len() <= limits.request.bytes_max
    }

    /// Whether its requests may be executed now.
    fn may_execute(&self, limits: &ConnectionLimits, now: Instant) -> bool {
        self.has_session()
            && !self.input.is_empty()
            && self.phase == Phase::Open
            && self.retry_at.is_none_or(|at| at <= now)
            && self.unwritten() < limits.output_bytes_max
    }

    /// Its session, if it is here.
    pub fn session_mut(&mut self) -> Option<&mut Session> {
        match &mut self.session {
            SessionPlace::Here(session) => Some(session),
            SessionPlace::Away { .. } => None,
        }
    }

    fn has_session(&self) -> bool {
        matches!(self.session, SessionPlace::Here(_))
    }

    /// Its session was woken: a parked request can continue.
    pub fn call(&mut self, now: Instant) {
        match &mut self.session {
            SessionPlace::Away { is_called, .. } => *is_called = true,
            SessionPlace::Here(_) if self.retry_at.is_some() => self.retry_at = Some(now),
            SessionPlace::Here(_) => {} // an earlier wake-up, or the end of a pause, came first
        }
    }

    /// Parses its requests into a batch, up to the limit of a turn, and adds its session. Returns
    /// whether what it has sent is sound.
    pub fn submit(
        &mut self,
        number: u32,
        batch: &mut Batch,
        replies: Replies,
        limits: &ConnectionLimits,
        now: Instant,
    ) -> bool {
        if !self.may_execute(limits, now) {
            return true;
        }
        let (mut submitted, mut requests, mut is_sound) = (0, 0, true);
        self.has_unparsed = true;
        while requests < limits.pipeline_max {
            let rest = &self.input[submitted..];
            match self.parser.parse(rest, limits.request) {
                Ok(Some(length)) => {
                    submitted += length;
                    batch.add_request(&rest[..length], self.parser.spans(), submitted);
                    requests += 1;
                }
                Ok(None) => {
                    self.has_unparsed = false;
                    break;
                }
                // The requests before it are answered first: the error is found again after them.
                Err(_) if requests > 0 => break,
                Err(error) => {
                    self.refuse(&error);
                    is_sound = false;
                    break;
                }
            }
        }
        if requests > 0
            && let Some(session) = self.send_session()
        {
            self.submitted = submitted;
            let replies_max = limits.output_bytes_max - self.unwritten();
            batch.add_chunk(number, session, self.socket(replies), replies_max);
        }
        is_sound
    }

    /// The session, for a batch, if it is here; it is away afterwards.
    pub fn send_session(&mut self) -> Option<Box<Session>> {
        if !self.has_session() {
            return None;
        }
        let away = SessionPlace::Away {
            is_called: false,
            is_awaited: false,
        };
        match std::mem::replace(&mut self.session, away) {
            SessionPlace::Here(session) => Some(session),
            SessionPlace::Away { .. } => None,
        }
    }

    /// The socket for an engine that may write replies. The I/O thread writes nothing while the
    /// session is away.
    fn socket(&self, replies: Replies) -> Option<Arc<TcpStream>> {
        let may_write = replies == Replies::Engine && self.is_writable && self.unwritten() == 0;
        may_write.then(|| Arc::clone(&self.stream))
    }

    /// Whether the connection has work to do as soon as its session is back. Records that it waits
    /// for the session, and returns true only once for each time that the session is away.
    pub fn begins_to_await(&mut self) -> bool {
        let has_more = self.has_unparsed || self.input.len() > self.submitted;
        let has_ended = self.incoming == Incoming::Ended || self.phase == Phase::Broken;
        match &mut self.session {
            SessionPlace::Away { is_awaited, .. } if has_more || has_ended => {
                !std::mem::replace(is_awaited, true)
            }
            _ => false,
        }
    }

    /// Takes its session back, with replies. Returns whether the connection has waited for it.
    pub fn take_back(&mut self, returned: Returned, now: Instant) -> bool {
        let here = SessionPlace::Here(returned.session);
        let (is_called, is_awaited) = match std::mem::replace(&mut self.session, here) {
            SessionPlace::Away {
                is_called,
                is_awaited,
            } => (is_called, is_awaited),
            SessionPlace::Here(_) => (false, false),
        };
        self.is_logged_in |= self.session_mut().is_some_and(|it| it.authenticated);
        self.answer(returned.unwritten, now);
        let progress = returned.progress;
        self.input.drain(..progress.consumed);
        if progress.consumed < self.submitted {
            // The parser is behind requests that were not executed: it starts again at the first
            // one.
            self.parser = Parser::default();
            self.has_unparsed = true;
        }
        self.submitted = 0;
        if self.input.is_empty() {
            self.input.shrink_to(KEPT_BYTES_MAX);
        }
        if progress.executed > 0 {
            self.progress = now;
        }
        self.go_on(progress.flow, is_called, now);
        is_awaited
    }

    fn go_on(&mut self, flow: Flow, is_called: bool, now: Instant) {
        if flow == Flow::Close && self.phase == Phase::Open {
            self.phase = Phase::Closing;
        }
        if flow.is_again() && self.incoming == Incoming::Ended {
            self.set_broken();
        }
        self.retry_at = match flow {
            Flow::Parked if is_called => Some(now),
            Flow::Parked => Some(now + self.pause(PARKED_MIN, PARKED_MAX)),
            Flow::Wait => Some(now + self.pause(RETRY_MIN, RETRY_MAX)),
            Flow::Delayed(wait) => Some(now + self.pause(LOGIN_MIN, LOGIN_MAX).max(wait)),
            Flow::Done | Flow::Unconfirmed | Flow::Close => {
                self.retry = RETRY_MIN;
                None
            }
        };
    }

    /// The next pause; twice as long each time.
    fn pause(&mut self, least: Duration, most: Duration) -> Duration {
        let pause = self.retry.max(least);
        self.retry = (pause * 2).min(most);
        pause
    }

    fn refuse(&mut self, error: &ProtocolError) {
        let option = match error {
            _ if !self.has_logged_in() && error.is_limit() => " before the login",
            ProtocolError::TooManyArguments(..) => " (--arguments-max)",
            ProtocolError::TooLong(_) => " (--request-bytes-max)",
            _ => "",
        };
        let message = format!("Protocol error: {error}{option}");
        Writer::new(&mut self.output, Version::Two).error("ERR", &message);
        self.phase = Phase::Closing;
    }

    fn unwritten(&self) -> usize {
        self.output.len() - self.written
    }

    /// Writes replies that have just come, if no earlier ones are left and one write is enough; keeps
    /// the others, and what the socket does not accept.
    fn answer(&mut self, replies: [&[u8]; 2], now: Instant) {
        let sent = match replies {
            [only, []] | [[], only] if self.unwritten() == 0 => self.send(only, now),
            _ => 0,
        };
        if self.phase != Phase::Broken {
            for part in replies {
                self.output.extend_from_slice(&part[sent.min(part.len())..]);
            }
        }
    }

    /// Writes replies that are left until the socket accepts no more.
    pub fn write(&mut self, now: Instant) {
        if self.unwritten() > 0 {
            let output = std::mem::take(&mut self.output);
            let sent = self.send(&output[self.written..], now);
            if self.phase != Phase::Broken {
                self.output = output;
                self.written += sent;
            }
        }
        if self.unwritten() == 0 {
            self.output.clear();
            self.output.shrink_to(KEPT_BYTES_MAX);
            self.written = 0;
        }
    }

    /// Writes until the socket accepts no more; returns how many bytes it took.
    fn send(&mut self, bytes: &[u8], now: Instant) -> usize {
        let mut sent = 0;
        while self.is_writable && self.phase != Phase::Broken && sent < bytes.len() {
            match transmit(&self.stream, &bytes[sent..]) {
                Ok(more) => {
                    sent += more;
                    self.progress = now;
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => self.is_writable = false,
                    ErrorKind::Interrupted => {}
                    _ => self.set_broken(),
                },
            }
        }
        sent
    }

    /// Whether another turn would have work to do.
    pub fn wants_turn(&self, limits: &ConnectionLimits, now: Instant) -> bool {
        self.has_session() && (self.can_read(limits) || self.can_go_on(limits, now))
    }

    fn can_go_on(&self, limits: &ConnectionLimits, now: Instant) -> bool {
        self.has_unparsed && self.may_execute(limits, now)
    }

    /// Whether the connection can be closed, because nothing else is left to do.
    pub fn is_over(&self, limits: &ConnectionLimits, now: Instant) -> bool {
        let all_written = self.unwritten() == 0 && self.has_session();
        match self.phase {
            Phase::Broken => true,
            Phase::Closing => all_written,
            Phase::Open => {
                let has_ended = self.incoming == Incoming::Ended;
                all_written && has_ended && !self.can_go_on(limits, now)
            }
        }
    }

    /// Whether its client should have logged in by now.
    pub fn is_late(&self, timeout: Duration, now: Instant) -> bool {
        !self.has_logged_in() && now.duration_since(self.since) > timeout
    }

    /// Whether a request is incomplete, or replies are unread, for too long.
    pub fn is_stalled(&self, limits: &ConnectionLimits, now: Instant) -> bool {
        let half = !self.input.is_empty() && self.has_session() && self.retry_at.is_none();
        let unread = self.unwritten() > 0;
        (half || unread) && now.duration_since(self.progress) > limits.stalled
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use clap::Parser as _;

    use super::*;
    use crate::net::batch::Progress;
    use crate::options::ServerArgs;
    use crate::services::Services;

    const WRITABLE: Ready = Ready {
        number: 0,
        readable: false,
        ended: false,
        writable: true,
    };

    /// A connection without buffered bytes, and its client, which never waits.
    fn connected() -> (ClientConnection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        for end in [&client, &stream] {
            end.set_nonblocking(true).unwrap();
        }
        let options = ServerArgs::try_parse_from(["concurve-server"]).unwrap();
        let services = Services::open(&options.options().unwrap()).unwrap();
        let session = Box::new(Session::new(1, 0, Source::UNKNOWN, &services));
        (
            ClientConnection::new(stream, session, Instant::now()),
            client,
        )
    }

    /// The session comes back with these replies and confirmations.
    fn come_back(connection: &mut ClientConnection, unwritten: [&[u8]; 2]) {
        let session = connection.send_session().expect("it is here");
        let progress = Progress {
            consumed: 0,
            executed: 0,
            flow: Flow::Done,
        };
        let returned = Returned {
            connection: 0,
            session,
            progress,
            unwritten,
        };
        connection.take_back(returned, Instant::now());
    }

    /// What the client can read now.
    fn read(client: &mut TcpStream) -> Vec<u8> {
        let mut found = Vec::new();
        match client.read_to_end(&mut found) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => found,
            other => panic!("the connection is open: {other:?}"),
        }
    }

    /// Whether the client reads this, however late it comes.
    fn reads(client: &mut TcpStream, expected: &[u8]) -> bool {
        client.set_nonblocking(false).unwrap();
        let patience = Some(Duration::from_secs(60));
        client.set_read_timeout(patience).unwrap();
        let mut found = vec![0; expected.len()];
        let outcome = client.read_exact(&mut found);
        client.set_nonblocking(true).unwrap();
        outcome.is_ok() && found == expected
    }

    #[test]
    fn replies_that_need_one_write_are_written_as_they_come() {
        for replies in [[&b":1\r\n"[..], b""], [b"", b":1\r\n"]] {
            let (mut connection, mut client) = connected();
            come_back(&mut connection, replies);
            assert!(reads(&mut client, b":1\r\n"));
            assert_eq!(connection.buffered(), 0);
        }
    }

    #[test]
    fn replies_that_need_two_writes_are_kept_for_one() {
        let (mut connection, mut client) = connected();
        come_back(&mut connection, [b"+A\r\n", b"+B\r\n"]);
        assert_eq!(read(&mut client), b"");
        connection.write(Instant::now());
        assert!(reads(&mut client, b"+A\r\n+B\r\n"));
        assert_eq!(connection.buffered(), 0);
    }

    #[test]
    fn what_a_socket_does_not_accept_comes_before_later_replies() {
        const LONG: usize = 64 << 20; // more than the buffers of two sockets
        let (mut connection, mut client) = connected();
        let long: Vec<u8> = (0..LONG).map(|at| (at % 251) as u8).collect();
        come_back(&mut connection, [&long, b""]);
        assert!((1..LONG).contains(&connection.buffered()));
        let mut found = read(&mut client);
        connection.note(WRITABLE);
        come_back(&mut connection, [b"next", b""]);
        let deadline = Instant::now() + Duration::from_secs(60);
        while found.len() < LONG + b"next".len() && Instant::now() < deadline {
            connection.note(WRITABLE);
            connection.write(Instant::now());
            found.extend(read(&mut client));
        }
        assert!(found == [&long[..], b"next"].concat(), "in order");
        assert_eq!(connection.buffered(), 0);
    }

    #[test]
    fn nothing_is_kept_for_a_client_that_has_gone() {
        let (mut connection, client) = connected();
        drop(client);
        // The first write is refused by the client's host, the second fails.
        let deadline = Instant::now() + Duration::from_secs(60);
        while !connection.is_broken() && Instant::now() < deadline {
            come_back(&mut connection, [b":1\r\n", b""]);
        }
        assert!(connection.is_broken());
        assert_eq!(connection.buffered(), 0);
    }
}
