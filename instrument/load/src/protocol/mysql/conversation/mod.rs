//! One connection's conversation: handshake, log-in, preparing, and then trips.

mod beginning;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::packet::{self, HEADER, Packet};
use super::password::Method;
use super::reply::{Command, Read, Results, ServerError};
use super::{Shared, garbled, refusal, request, shown};
use crate::protocol::{Conversation, Message, ProtocolError, Received};
use crate::workload::{Answer, Numbers};

/// A connection to a server.
#[derive(Debug)]
pub struct Connection {
    shared: Arc<Shared>,
    stage: Stage,
    /// Of the packet that comes next, inside of an answer or the log-in.
    sequence: Option<u8>,
    /// Of the first packet that answers each command under way: it goes on from those of the
    /// command, which are several if that is long.
    awaited: VecDeque<u8>,
    /// Number of each statement that could be prepared.
    prepared: Vec<Option<u32>>,
    /// In the order in which their answers come.
    trips: VecDeque<Trip>,
    results: Results,
    /// The answer to the first trip, once what it began is rolled back.
    failed: Option<Answer>,
}

#[derive(Debug, Clone, Copy)]
struct Trip {
    command: Command,
    /// Not of the workload: an error is told in full.
    once: bool,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Handshake,
    Login(Method),
    /// Variables are being set.
    Setting,
    /// So many packets about the last prepared statement are still to come.
    Preparing(usize),
    Ready,
}

impl Conversation for Connection {
    fn greet(&mut self, _out: &mut Vec<u8>) -> bool {
        // The server speaks first.
        true
    }

    fn ask(&mut self, statements: Range<usize>, numbers: &Numbers, out: &mut Vec<u8>) {
        let first = statements.start;
        let templates = &self.shared.templates[statements];
        let prepared = match templates {
            [_] => self.prepared[first],
            _ => None,
        };
        let answer = match prepared {
            Some(id) => templates[0].put_execute(id, numbers, out),
            None => request::put_query(templates, numbers, out),
        };
        self.awaited.push_back(answer);
        let command = Command {
            binary: prepared.is_some(),
            changes: templates.last().is_some_and(|it| it.changes),
        };
        self.asked(Trip {
            command,
            once: false,
        });
    }

    fn ask_once(&mut self, statement: &str, out: &mut Vec<u8>) {
        let answer = request::put_command(statement, out);
        self.awaited.push_back(answer);
        self.asked(Trip {
            command: Command::default(),
            once: true,
        });
    }

    fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Received, ProtocolError> {
        let first = self.awaited.front().copied();
        let unasked = self.sequence.is_none() && (first.is_none() || is_unasked(input));
        let sequence = self.sequence.or(first.filter(|_| !unasked));
        let Some(packet) = packet::first(input, sequence.unwrap_or(0))? else {
            return Ok(Received {
                consumed: 0,
                message: Message::Partial,
            });
        };
        self.sequence = Some(packet.sequence);
        let Packet {
            payload, consumed, ..
        } = packet;
        let message = match self.stage {
            Stage::Handshake => self.shake(&payload, out)?,
            Stage::Login(method) => self.log_in(method, &payload, out)?,
            Stage::Setting => self.after_setting(&payload)?,
            Stage::Preparing(0) => self.prepare(&payload)?,
            Stage::Preparing(left) => self.after_preparing(left - 1),
            Stage::Ready if unasked => {
                self.sequence = None;
                farewell(&payload)?
            }
            Stage::Ready => self.hear(&payload, out)?,
        };
        Ok(Received { consumed, message })
    }
}

impl Connection {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            stage: Stage::Handshake,
            sequence: Some(0),
            awaited: VecDeque::new(),
            prepared: Vec::new(),
            trips: VecDeque::new(),
            results: Results::default(),
            failed: None,
        }
    }

    /// The answer to a command has ended.
    fn answered(&mut self) {
        self.awaited.pop_front();
        self.sequence = None;
    }

    fn asked(&mut self, trip: Trip) {
        if self.trips.is_empty() {
            self.results.begin(trip.command);
        }
        self.trips.push_back(trip);
    }

    /// An answer to what was asked.
    fn hear(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<Message, ProtocolError> {
        let Some(trip) = self.trips.front().copied() else {
            return Err(ProtocolError::Unasked(shown(payload)));
        };
        let answer = match self.results.read(payload) {
            None => return Err(garbled(payload)),
            Some(Read::More) => return Ok(Message::Aside),
            Some(Read::Answer(answer)) => self.failed.take().unwrap_or(answer),
            // The end of the connection follows, and tells that what was under way is in doubt.
            Some(Read::Error(error)) if error.ends_connection() => return Ok(Message::Aside),
            Some(Read::Error(error)) if self.failed.is_some() => {
                return Err(refusal::of_statement("ROLLBACK", &error));
            }
            Some(Read::Error(error)) => {
                let answer = Answer::Error(match trip.once {
                    true => error.to_string(),
                    false => error.kind(),
                });
                if self.results.in_transaction {
                    self.answered();
                    self.awaited
                        .push_front(request::put_command("ROLLBACK", out));
                    self.results.begin(Command::default());
                    self.failed = Some(answer);
                    return Ok(Message::Aside);
                }
                answer
            }
        };
        self.answered();
        self.trips.pop_front();
        if let Some(next) = self.trips.front() {
            self.results.begin(next.command);
        }
        Ok(Message::Answer(answer))
    }
}

/// Whether the server begins its own count of packets, and so answers nothing.
fn is_unasked(input: &[u8]) -> bool {
    input.get(HEADER - 1) == Some(&0)
}

/// What the server may say without being asked: that it will close the connection.
fn farewell(payload: &[u8]) -> Result<Message, ProtocolError> {
    match ServerError::parse(payload) {
        Some(error) if error.ends_connection() => Ok(Message::Aside),
        Some(error) => Err(ProtocolError::Unasked(error.to_string())),
        None => Err(ProtocolError::Unasked(shown(payload))),
    }
}
