//! Parsed requests on their way to an engine, and their replies on the way back.
//!
//! The memory of a batch is used again; in the long run nothing is allocated. A connection's
//! session travels with its requests, so that only one thread has it at a time.

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
    /// The connection is lost: end its session.
    pub is_close: bool,
    requests_end: u32,
    /// Bytes of the requests that were executed.
    pub consumed: usize,
    pub executed: u64,
    pub flow: Flow,
    /// Where its replies end; they begin where those of the chunk before end.
    pub replies_end: usize,
    pub promises_end: usize,
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
    pub fn add_chunk(&mut self, connection: u32, session: Box<Session>, is_close: bool) {
        self.chunks.push(Chunk {
            connection,
            session,
            is_close,
            requests_end: self.requests.len() as u32,
            consumed: 0,
            executed: 0,
            flow: Flow::Done,
            replies_end: 0,
            promises_end: 0,
        });
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
}
