//! One connection: its buffers, and what it may do next.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::commands::{Arguments, Flow, Session, confirm, execute};
use crate::hall::Hall;
use crate::monitor::meter::{Meter, State};
use crate::net::batch::Batch;
use crate::resp::parser::{Parser, ProtocolError};
use crate::resp::writer::{Version, Writer};
use crate::settings::Replies;

/// First and longest pause between two tries for a lock that a request waits for.
const RETRY_MIN: Duration = Duration::from_millis(1);
const RETRY_MAX: Duration = Duration::from_millis(64);
/// The same of one that will be called: only deadlocks are looked for.
const PARKED_MIN: Duration = Duration::from_millis(10);
const PARKED_MAX: Duration = Duration::from_secs(1);

/// Memory that an idle connection may keep for each direction.
const KEPT_BYTES_MAX: usize = 16 * 1024;

#[derive(Debug)]
pub struct Connection {
    pub stream: Arc<TcpStream>,
    /// Away while an engine has it.
    pub session: Option<Box<Session>>,
    parser: Parser,
    input: Vec<u8>,
    /// Bytes of the requests that were handed over to be executed.
    submitted: usize,
    /// Whole requests may be left in `input`.
    unfinished: bool,
    output: Vec<u8>,
    /// Bytes of `output` that were written.
    written: usize,
    /// The socket may have more to read, may take more.
    pub readable: bool,
    pub writable: bool,
    /// The end, or an error, is behind what the socket still has.
    pub ending: bool,
    /// The client sends no more.
    ended: bool,
    /// The socket is broken, or a limit was passed: nothing can be said any more.
    pub gone: bool,
    /// The last reply is in `output`.
    closing: bool,
    /// When to try again for a lock that its request waits for, and the pause after that.
    pub retry_at: Option<Instant>,
    retry: Duration,
    /// Its session was called while it was away.
    called: bool,
    /// It committed, and was not promised it yet.
    unconfirmed: bool,
    /// When a request was last completed, begun, or a reply taken.
    progress: Instant,
    /// In the list of those to have a turn, of those that wait for a lock.
    pub queued: bool,
    pub waiting: bool,
    /// Its I/O thread counts it among those whose session is awaited.
    pub awaited: bool,
}

impl Connection {
    pub fn new(stream: TcpStream, session: Box<Session>, now: Instant) -> Self {
        Self {
            stream: Arc::new(stream),
            session: Some(session),
            parser: Parser::default(),
            input: Vec::new(),
            submitted: 0,
            unfinished: false,
            output: Vec::new(),
            written: 0,
            readable: true,
            writable: true,
            ending: false,
            ended: false,
            gone: false,
            closing: false,
            retry_at: None,
            retry: RETRY_MIN,
            called: false,
            unconfirmed: false,
            progress: now,
            queued: false,
            waiting: false,
            awaited: false,
        }
    }

    /// Reads once, if there is room for more than the longest request.
    pub fn read(&mut self, scratch: &mut [u8], hall: &Hall, now: Instant) {
        if !self.readable || self.ended || self.gone {
            return;
        }
        if self.input.len() > hall.settings.limits.bytes_max {
            return;
        }
        match (&*self.stream).read(scratch) {
            Ok(0) => {
                self.ended = true;
                // Nobody is left to be granted what it waited for.
                self.gone |= self.retry_at.is_some();
            }
            Ok(bytes) => {
                // Fewer than asked for: all is read, and the next event says when there is more.
                // The end may have been told already: then it is met by reading on.
                self.readable = bytes == scratch.len() || self.ending;
                if self.input.is_empty() {
                    self.progress = now;
                }
                self.input.extend_from_slice(&scratch[..bytes]);
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => self.readable = false,
                ErrorKind::Interrupted => {}
                _ => self.gone = true,
            },
        }
    }

    /// Whether its requests may be executed now.
    fn may_execute(&self, hall: &Hall, now: Instant) -> bool {
        self.session.is_some()
            && !self.input.is_empty()
            && !self.closing
            && !self.gone
            && self.retry_at.is_none_or(|at| at <= now)
            && self.unread() < hall.settings.output_bytes_max
    }

    /// Executes what it asks for, up to the limit of a turn. Returns the number of requests.
    pub fn execute(&mut self, hall: &Hall, engine: usize, now: Instant) -> u64 {
        if !self.may_execute(hall, now) {
            return 0;
        }
        let Some(mut session) = self.session.take() else {
            return 0;
        };
        let (mut consumed, mut executed, mut flow) = (0, 0, Flow::Done);
        self.unfinished = true;
        while flow == Flow::Done
            && executed < hall.settings.pipeline_max as u64
            && self.unread() < hall.settings.output_bytes_max
        {
            let rest = &self.input[consumed..];
            let length = match self.parser.parse(rest, hall.settings.limits) {
                Ok(Some(length)) => length,
                Ok(None) => {
                    self.unfinished = false;
                    break;
                }
                Err(error) => {
                    self.refuse(&error);
                    break;
                }
            };
            let arguments = Arguments {
                bytes: rest,
                spans: self.parser.spans(),
            };
            flow = execute(hall, engine, &mut session, arguments, &mut self.output);
            self.submitted = consumed + length;
            if !flow.is_again() {
                consumed += length;
                executed += 1;
            }
        }
        self.session = Some(session);
        self.unconfirmed = flow == Flow::Unconfirmed;
        self.after(consumed, executed, flow, now);
        executed
    }

    /// Promises what was committed in this turn.
    pub fn confirm(&mut self, hall: &Hall, meter: &Meter) {
        if std::mem::take(&mut self.unconfirmed)
            && let Some(session) = &mut self.session
        {
            meter.during(State::Disk, || confirm(hall, session, &mut self.output));
        }
    }

    /// Its session can go on.
    pub fn call(&mut self, now: Instant) {
        if self.retry_at.is_some() && self.session.is_some() {
            self.retry_at = Some(now);
        } else {
            self.called = true;
        }
    }

    /// Puts what it asks for into a batch, up to the limit of a turn, and its session with it.
    pub fn submit(&mut self, number: u32, batch: &mut Batch, hall: &Hall, now: Instant) {
        if !self.may_execute(hall, now) {
            return;
        }
        let (mut submitted, mut requests) = (0, 0);
        self.unfinished = true;
        while requests < hall.settings.pipeline_max {
            let rest = &self.input[submitted..];
            match self.parser.parse(rest, hall.settings.limits) {
                Ok(Some(length)) => {
                    submitted += length;
                    batch.add_request(&rest[..length], self.parser.spans(), submitted);
                    requests += 1;
                }
                Ok(None) => {
                    self.unfinished = false;
                    break;
                }
                // Requests before it are answered first: it is found again after them.
                Err(_) if requests > 0 => break,
                Err(error) => {
                    self.refuse(&error);
                    break;
                }
            }
        }
        if requests > 0
            && let Some(session) = self.session.take()
        {
            self.submitted = submitted;
            batch.add_chunk(number, session, self.socket(hall));
        }
    }

    /// What an engine may write replies to: nothing else is written while it has the session.
    fn socket(&self, hall: &Hall) -> Option<Arc<TcpStream>> {
        let is_free = self.unread() == 0 && self.writable;
        let may_write = hall.settings.replies == Replies::Engine && is_free;
        may_write.then(|| Arc::clone(&self.stream))
    }

    /// Whether there is something to do as soon as its session is back.
    pub fn awaits_session(&self) -> bool {
        let more = self.unfinished || self.input.len() > self.submitted;
        self.session.is_none() && (more || self.ended || self.gone)
    }

    /// Requests were executed; `flow` is that of the last one.
    pub fn after(&mut self, consumed: usize, executed: u64, flow: Flow, now: Instant) {
        self.input.drain(..consumed);
        if consumed < self.submitted {
            // The parser has passed requests that were not executed: it begins again.
            self.parser = Parser::default();
            self.unfinished = true;
        }
        self.submitted = 0;
        if self.input.is_empty() {
            self.input.shrink_to(KEPT_BYTES_MAX);
        }
        if executed > 0 {
            self.progress = now;
        }
        self.closing |= flow == Flow::Close;
        let called = std::mem::take(&mut self.called);
        self.gone |= flow.is_again() && self.ended;
        self.retry_at = match flow {
            Flow::Parked if called => Some(now),
            Flow::Parked => Some(now + self.pause(PARKED_MIN, PARKED_MAX)),
            Flow::Wait => Some(now + self.pause(RETRY_MIN, RETRY_MAX)),
            _ => {
                self.retry = RETRY_MIN;
                None
            }
        };
    }

    /// Twice as long each time.
    fn pause(&mut self, least: Duration, most: Duration) -> Duration {
        let pause = self.retry.max(least);
        self.retry = (pause * 2).min(most);
        pause
    }

    /// Takes the replies of executed requests.
    pub fn answer(&mut self, replies: &[u8]) {
        self.output.extend_from_slice(replies);
    }

    fn refuse(&mut self, error: &ProtocolError) {
        let message = format!("Protocol error: {error}");
        Writer::new(&mut self.output, Version::Two).error("ERR", &message);
        self.closing = true;
    }

    fn unread(&self) -> usize {
        self.output.len() - self.written
    }

    /// Writes replies as far as the socket takes them.
    pub fn write(&mut self, now: Instant) {
        while self.writable && !self.gone && self.unread() > 0 {
            match (&*self.stream).write(&self.output[self.written..]) {
                Ok(bytes) => {
                    self.written += bytes;
                    self.progress = now;
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => self.writable = false,
                    ErrorKind::Interrupted => {}
                    _ => self.gone = true,
                },
            }
        }
        if self.unread() == 0 {
            self.output.clear();
            self.output.shrink_to(KEPT_BYTES_MAX);
            self.written = 0;
        }
    }

    /// Whether another turn would do something.
    pub fn wants_turn(&self, hall: &Hall, now: Instant) -> bool {
        let room = self.input.len() <= hall.settings.limits.bytes_max;
        let can_read = self.readable && !self.ended && room;
        !self.gone && self.session.is_some() && (can_read || self.can_go_on(hall, now))
    }

    fn can_go_on(&self, hall: &Hall, now: Instant) -> bool {
        self.unfinished && self.may_execute(hall, now)
    }

    /// Whether nothing is left to do but to close it.
    pub fn is_over(&self, hall: &Hall, now: Instant) -> bool {
        let said_all = self.unread() == 0 && self.session.is_some();
        let asked_all = self.ended && !self.can_go_on(hall, now);
        self.gone || (said_all && (self.closing || asked_all))
    }

    /// Whether it has kept half a request, or unread replies, for too long.
    pub fn is_stalled(&self, hall: &Hall, now: Instant) -> bool {
        let half = !self.input.is_empty() && self.session.is_some() && self.retry_at.is_none();
        let unread = self.unread() > 0;
        (half || unread) && now.duration_since(self.progress) > hall.settings.stalled
    }
}
