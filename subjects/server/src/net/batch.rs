//! Parsed requests on their way to an engine, and their replies on the way back.
//!
//! The memory of a batch is used again; in the long run nothing is allocated. A connection's
//! session travels with its requests, so that only one thread has it at a time.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;

use crate::commands::{Arguments, Flow, Session, confirm, execute};
use crate::hall::Hall;
use crate::monitor::meter::{Meter, State};
use crate::resp::parser::Span;

#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    requests: Vec<Request>,
    pub chunks: Vec<Chunk>,
    pub replies: Vec<u8>,
    /// What was promised at the end, after the replies of the same chunk.
    pub promises: Vec<u8>,
}

/// A request: its arguments among the spans, and where its bytes end within those of its chunk.
#[derive(Debug, Clone, Copy)]
struct Request {
    spans_end: u32,
    consumed: u32,
}

/// Requests of one connection, in order.
#[derive(Debug)]
pub struct Chunk {
    pub connection: u32,
    pub session: Box<Session>,
    /// Where to write its replies, if they need not go back first: nothing is left to write before.
    socket: Option<Arc<TcpStream>>,
    /// The connection is lost: end its session.
    pub is_close: bool,
    requests_end: u32,
    /// Bytes of the requests that were executed.
    pub consumed: usize,
    pub executed: u64,
    /// All its requests were executed.
    is_whole: bool,
    pub flow: Flow,
    /// Where its replies end; they begin where those of the chunk before end.
    pub replies_end: usize,
    pub promises_end: usize,
    /// Bytes of its replies and promises that were written to the socket.
    pub written: usize,
}

impl Chunk {
    /// Writes as much as the socket takes, if it came along. Whether nothing is left to do.
    fn answer(&mut self, parts: [&[u8]; 2]) -> bool {
        if self.is_close {
            return true;
        }
        let Some(socket) = self.socket.take() else {
            return false;
        };
        let mut is_all = self.is_whole && matches!(self.flow, Flow::Done | Flow::Unconfirmed);
        let mut is_open = true;
        for part in parts.into_iter().filter(|it| !it.is_empty()) {
            // Whatever is wrong with the socket, the I/O thread meets it with the rest.
            let bytes = if is_open {
                (&*socket).write(part).unwrap_or(0)
            } else {
                0
            };
            self.written += bytes;
            is_open = bytes == part.len();
            is_all &= is_open;
        }
        is_all
    }
}

impl Batch {
    /// Adds a request of the chunk that will be closed next. `spans` are positions in `bytes`,
    /// which end at `consumed` within the chunk.
    pub fn add_request(&mut self, bytes: &[u8], spans: &[Span], consumed: usize) {
        let base = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        let moved = spans.iter().map(|(start, end)| (start + base, end + base));
        self.spans.extend(moved);
        self.requests.push(Request {
            spans_end: self.spans.len() as u32,
            consumed: consumed as u32,
        });
    }

    /// The requests added since the last chunk are this connection's.
    pub fn add_chunk(
        &mut self,
        connection: u32,
        session: Box<Session>,
        socket: Option<Arc<TcpStream>>,
    ) {
        self.add(connection, session, socket, false);
    }

    /// This connection is lost.
    pub fn add_close(&mut self, connection: u32, session: Box<Session>) {
        self.add(connection, session, None, true);
    }

    fn add(
        &mut self,
        connection: u32,
        session: Box<Session>,
        socket: Option<Arc<TcpStream>>,
        is_close: bool,
    ) {
        self.chunks.push(Chunk {
            connection,
            session,
            socket,
            is_close,
            requests_end: self.requests.len() as u32,
            consumed: 0,
            executed: 0,
            is_whole: false,
            flow: Flow::Done,
            replies_end: 0,
            promises_end: 0,
            written: 0,
        });
    }

    /// Whether something was committed in it that has yet to be promised.
    pub fn is_unconfirmed(&self) -> bool {
        let mut flows = self.chunks.iter().map(|it| it.flow);
        flows.any(|flow| flow == Flow::Unconfirmed)
    }

    /// How many of its requests were executed.
    pub fn executed(&self) -> u64 {
        self.chunks.iter().map(|it| it.executed).sum()
    }

    /// Whether only one connection is in it.
    pub fn is_of_one(&self) -> bool {
        self.chunks.len() == 1
    }

    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Bytes of requests in it.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
        self.requests.clear();
        self.chunks.clear();
        self.replies.clear();
        self.promises.clear();
    }

    /// Executes everything in it, as the engine of this number, from 0.
    pub fn execute(&mut self, hall: &Hall, engine: usize) {
        let (mut request, mut span) = (0, 0);
        for chunk in &mut self.chunks {
            let end = chunk.requests_end as usize;
            let (begin, replies_max) = (self.replies.len(), hall.settings.output_bytes_max);
            for asked in &self.requests[request..end] {
                let arguments = Arguments {
                    bytes: &self.bytes,
                    spans: &self.spans[span..asked.spans_end as usize],
                };
                span = asked.spans_end as usize;
                if chunk.flow != Flow::Done || self.replies.len() - begin >= replies_max {
                    continue; // to be asked again, if at all; its spans had to be passed
                }
                let session = &mut chunk.session;
                chunk.flow = execute(hall, engine, session, arguments, &mut self.replies);
                if !chunk.flow.is_again() {
                    chunk.consumed = asked.consumed as usize;
                    chunk.executed += 1;
                }
            }
            chunk.is_whole = chunk.executed == (end - request) as u64;
            request = end;
            if chunk.is_close {
                chunk.session.close(hall);
            }
            chunk.replies_end = self.replies.len();
        }
    }

    /// Promises what was committed in it.
    pub fn confirm(&mut self, hall: &Hall, meter: &Meter) {
        for chunk in &mut self.chunks {
            if chunk.flow == Flow::Unconfirmed {
                let (session, promises) = (&mut chunk.session, &mut self.promises);
                meter.during(State::Disk, || confirm(hall, session, promises));
            }
            chunk.promises_end = self.promises.len();
        }
    }

    /// Writes replies to the sockets that came along. Whether nothing is left to do for any of its
    /// connections, until that asks for more.
    pub fn answer(&mut self) -> bool {
        let (mut replies, mut promises, mut is_all) = (0, 0, true);
        for chunk in &mut self.chunks {
            let parts = [
                &self.replies[replies..chunk.replies_end],
                &self.promises[promises..chunk.promises_end],
            ];
            (replies, promises) = (chunk.replies_end, chunk.promises_end);
            is_all &= chunk.answer(parts);
        }
        is_all
    }
}
