//! Parsed requests of many connections, and their replies.
//!
//! A batch goes from the thread that owns the sockets to an engine and back. Its memory is used
//! again, so that nothing is allocated in the long run. A batch contains the sessions of the
//! connections with their requests, so only one thread owns a session at a time.

use std::net::TcpStream;
use std::sync::Arc;

use crate::net::transfer::transmit;
use crate::request::{Arguments, Flow};
use crate::resp::parser::Span;
use crate::session::Session;

/// Requests of connections of one I/O thread.
#[derive(Debug, Default)]
pub struct Batch {
    /// The I/O thread that owns the sockets, from 0.
    pub io_thread: usize,
    bytes: Vec<u8>,
    spans: Vec<Span>,
    requests: Vec<Request>,
    chunks: Vec<Chunk>,
    replies: Vec<u8>,
    /// Replies to commits, written once the commits are durable, after the other replies of a
    /// chunk.
    confirmations: Vec<u8>,
}

/// A request: the end of its arguments in `spans`, and the end of its bytes within its chunk.
#[derive(Debug, Clone, Copy)]
struct Request {
    spans_end: u32,
    consumed: u32,
}

/// Requests of one connection, in order.
#[derive(Debug)]
struct Chunk {
    connection: u32,
    session: Box<Session>,
    task: Task,
    /// End of its requests; they begin at the end of those of the previous chunk.
    requests_end: u32,
    progress: Progress,
    /// Ends of its replies and confirmations; they begin at the ends of those of the previous
    /// chunk.
    replies_end: usize,
    confirmations_end: usize,
    /// Bytes of its replies and confirmations that were written to the socket.
    written: usize,
}

/// What is to be done with a session.
#[derive(Debug)]
enum Task {
    Requests {
        /// The socket, if an engine may write replies to it, because all earlier replies are
        /// written.
        socket: Option<Arc<TcpStream>>,
        /// Bytes of replies after which no more requests are executed.
        replies_max: usize,
    },
    /// The connection is lost: the session ends.
    Close,
}

/// How far the requests of a chunk were executed.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Bytes of the requests that were executed.
    pub consumed: usize,
    pub executed: u64,
    /// What happens after the last request.
    pub flow: Flow,
}

/// Executes the requests of a batch.
pub trait Executor {
    fn execute(&self, session: &mut Session, arguments: Arguments, replies: &mut Vec<u8>) -> Flow;

    /// Ends the session of a lost connection.
    fn close(&self, session: &mut Session);
}

/// The results for a connection whose requests were in a batch.
pub struct Returned<'a> {
    pub connection: u32,
    pub session: Box<Session>,
    pub progress: Progress,
    /// The bytes that are left to write: replies, then confirmations.
    pub unwritten: [&'a [u8]; 2],
}

impl Chunk {
    /// Writes as much as the socket accepts, if the batch contains the socket. Returns whether
    /// nothing is left to do for the connection.
    fn write(&mut self, parts: [&[u8]; 2], requests: u32) -> bool {
        let Task::Requests { socket, .. } = &mut self.task else {
            return true;
        };
        let Some(socket) = socket.take() else {
            return false;
        };
        let Progress { executed, flow, .. } = self.progress;
        let mut is_all =
            executed == u64::from(requests) && matches!(flow, Flow::Done | Flow::Unconfirmed);
        let mut is_open = true;
        for part in parts.into_iter().filter(|it| !it.is_empty()) {
            // On an error nothing is written here: the I/O thread gets the same error when it
            // writes.
            let bytes = if is_open {
                transmit(&socket, part).unwrap_or(0)
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
    /// An empty batch of this I/O thread, from 0.
    pub fn of(io_thread: usize) -> Self {
        Self {
            io_thread,
            ..Self::default()
        }
    }

    /// Adds a request of the chunk that will be added next. `spans` are positions in `bytes`, which
    /// end at `consumed` within the chunk.
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

    /// Makes the requests that were added since the last chunk a chunk of this connection. An
    /// engine may write the replies to `socket`. It executes no more requests after `replies_max`
    /// bytes of replies.
    pub fn add_chunk(
        &mut self,
        connection: u32,
        session: Box<Session>,
        socket: Option<Arc<TcpStream>>,
        replies_max: usize,
    ) {
        let task = Task::Requests {
            socket,
            replies_max,
        };
        self.add(connection, session, task);
    }

    /// Adds the end of the session of a lost connection.
    pub fn add_close(&mut self, connection: u32, session: Box<Session>) {
        self.add(connection, session, Task::Close);
    }

    fn add(&mut self, connection: u32, session: Box<Session>, task: Task) {
        self.chunks.push(Chunk {
            connection,
            session,
            task,
            requests_end: self.requests.len() as u32,
            progress: Progress {
                consumed: 0,
                executed: 0,
                flow: Flow::Done,
            },
            replies_end: 0,
            confirmations_end: 0,
            written: 0,
        });
    }

    /// Whether one of its replies must wait until a commit is durable.
    pub fn is_unconfirmed(&self) -> bool {
        let mut flows = self.chunks.iter().map(|it| it.progress.flow);
        flows.any(|flow| flow == Flow::Unconfirmed)
    }

    /// How many of its requests were executed.
    pub fn executed(&self) -> u64 {
        self.chunks.iter().map(|it| it.progress.executed).sum()
    }

    /// How many connections are in it.
    pub fn connections(&self) -> usize {
        self.chunks.len()
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
        self.confirmations.clear();
    }

    /// Executes everything in it, in order.
    pub fn execute(&mut self, executor: &impl Executor) {
        let (mut request, mut span) = (0, 0);
        for chunk in &mut self.chunks {
            let end = chunk.requests_end as usize;
            match chunk.task {
                Task::Close => executor.close(&mut chunk.session),
                Task::Requests { replies_max, .. } => {
                    let (begin, progress) = (self.replies.len(), &mut chunk.progress);
                    for asked in &self.requests[request..end] {
                        if progress.flow != Flow::Done || self.replies.len() - begin >= replies_max
                        {
                            // The I/O thread submits the other requests again, unless the connection ends.
                            break;
                        }
                        let spans_end = asked.spans_end as usize;
                        let arguments = Arguments {
                            bytes: &self.bytes,
                            spans: &self.spans[span..spans_end],
                        };
                        span = spans_end;
                        let session = &mut chunk.session;
                        progress.flow = executor.execute(session, arguments, &mut self.replies);
                        if !progress.flow.is_again() {
                            progress.consumed = asked.consumed as usize;
                            progress.executed += 1;
                        }
                    }
                }
            }
            if let Some(last) = self.requests[request..end].last() {
                span = last.spans_end as usize;
            }
            request = end;
            chunk.replies_end = self.replies.len();
        }
    }

    /// Lets `confirm` make the commits in it durable and write their replies.
    pub fn confirm(&mut self, mut confirm: impl FnMut(&mut Session, &mut Vec<u8>)) {
        for chunk in &mut self.chunks {
            if chunk.progress.flow == Flow::Unconfirmed {
                confirm(&mut chunk.session, &mut self.confirmations);
            }
            chunk.confirmations_end = self.confirmations.len();
        }
    }

    /// Writes replies to the sockets in the batch. Returns whether nothing is left to do for any
    /// connection of the batch until its client sends more.
    pub fn write(&mut self) -> bool {
        let (mut replies, mut confirmations, mut request, mut is_all) = (0, 0, 0, true);
        for chunk in &mut self.chunks {
            let parts = [
                &self.replies[replies..chunk.replies_end],
                &self.confirmations[confirmations..chunk.confirmations_end],
            ];
            (replies, confirmations) = (chunk.replies_end, chunk.confirmations_end);
            is_all &= chunk.write(parts, chunk.requests_end - request);
            request = chunk.requests_end;
        }
        is_all
    }

    /// Empties the batch: calls `take` with the results for each connection that is not lost.
    pub fn take_apart(&mut self, mut take: impl FnMut(Returned)) {
        let (mut replies, mut confirmations) = (0, 0);
        for chunk in self.chunks.drain(..) {
            let parts = [
                &self.replies[replies..chunk.replies_end],
                &self.confirmations[confirmations..chunk.confirmations_end],
            ];
            (replies, confirmations) = (chunk.replies_end, chunk.confirmations_end);
            let written = chunk.written.min(parts[0].len());
            if let Task::Requests { .. } = chunk.task {
                take(Returned {
                    connection: chunk.connection,
                    session: chunk.session,
                    progress: chunk.progress,
                    unwritten: [&parts[0][written..], &parts[1][chunk.written - written..]],
                });
            }
        }
        self.clear();
    }
}
