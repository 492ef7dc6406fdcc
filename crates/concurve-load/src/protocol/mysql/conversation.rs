//! One connection's conversation: handshake, log-in, preparing, and then trips.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::handshake::{Handshake, Switch};
use super::packet::{self, HEADER, Packet};
use super::password::Method;
use super::reply::{Command, Prepared, Read, Results, ServerError};
use super::{Greeting, Shared, garbled, refusal, request, shown};
use crate::protocol::{Conversation, Message, ProtocolError, Received};
use crate::workload::{Answer, Numbers};

const OK: u8 = 0x00;
const MORE: u8 = 0x01;
const SWITCH: u8 = 0xfe;
/// What "caching_sha2_password" says: it knows the password already, or wants all of it.
const KNOWN: &[u8] = &[3];
const WANTED: &[u8] = &[4];

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

    /// The server's first words.
    fn shake(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<Message, ProtocolError> {
        if let Some(error) = ServerError::parse(payload) {
            return Err(refusal::of_login(&error));
        }
        let handshake = Handshake::parse(payload)?;
        self.stage = Stage::Login(handshake.method);
        self.say(out, |greeting, out| handshake.put_answer(greeting, out));
        Ok(Message::Aside)
    }

    fn log_in(
        &mut self,
        method: Method,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Message, ProtocolError> {
        if let Some(error) = ServerError::parse(payload) {
            return Err(refusal::of_login(&error));
        }
        match payload.split_first() {
            Some((&OK, _)) => return Ok(self.logged_in(out)),
            Some((&SWITCH, request)) => {
                let switch = Switch::parse(request);
                let method = Method::named(switch.plugin)
                    .ok_or_else(|| refusal::of_plugin(switch.plugin))?;
                self.stage = Stage::Login(method);
                self.say(out, |greeting, out| {
                    out.extend(method.answer(greeting.password(), switch.scramble));
                });
            }
            Some((&MORE, KNOWN)) if method == Method::CachingSha2 => {}
            Some((&MORE, WANTED)) if method == Method::CachingSha2 => {
                if !self.shared.greeting.local {
                    return Err(refusal::of_whole_password());
                }
                self.say(out, |greeting, out| {
                    out.extend_from_slice(greeting.password().as_bytes());
                    out.push(0);
                });
            }
            _ => return Err(garbled(payload)),
        }
        Ok(Message::Aside)
    }

    /// Writes a packet of the log-in.
    fn say(&mut self, out: &mut Vec<u8>, fill: impl FnOnce(&Greeting, &mut Vec<u8>)) {
        let greeting = &self.shared.greeting;
        let sequence = self.sequence.unwrap_or(0);
        self.sequence = Some(packet::put(sequence, out, |out| fill(greeting, out)));
    }

    /// Asks to set the variables and to prepare all statements, together.
    fn logged_in(&mut self, out: &mut Vec<u8>) -> Message {
        let settings = &self.shared.greeting.settings;
        self.awaited.push_back(request::put_settings(settings, out));
        for template in self.shared.templates.iter().filter(|it| !it.is_new) {
            self.awaited.push_back(template.put_prepare(out));
        }
        self.stage = Stage::Setting;
        self.sequence = None;
        Message::Aside
    }

    fn after_setting(&mut self, payload: &[u8]) -> Result<Message, ProtocolError> {
        match ServerError::parse(payload) {
            Some(error) => Err(refusal::of_statement("SET SESSION", &error)),
            None => {
                self.stage = Stage::Preparing(0);
                self.answered();
                Ok(self.ready_if_prepared())
            }
        }
    }

    fn prepare(&mut self, payload: &[u8]) -> Result<Message, ProtocolError> {
        let template = &self.shared.templates[self.prepared.len()];
        if let Some(error) = ServerError::parse(payload) {
            if error.code != refusal::CANNOT_BE_PREPARED || template.parameters() > 0 {
                return Err(refusal::of_statement(&template.text, &error));
            }
            self.prepared.push(None);
            return Ok(self.after_preparing(0));
        }
        let prepared = Prepared::parse(payload).ok_or_else(|| garbled(payload))?;
        if prepared.parameters != template.parameters() {
            return Err(refusal::of_parameters(&template.text, prepared.parameters));
        }
        self.prepared.push(Some(prepared.id));
        Ok(self.after_preparing(prepared.packets))
    }

    /// Goes on with the next statement when nothing is left to come about the last.
    fn after_preparing(&mut self, left: usize) -> Message {
        self.stage = Stage::Preparing(left);
        if left > 0 {
            return Message::Aside;
        }
        self.answered();
        self.ready_if_prepared()
    }

    fn ready_if_prepared(&mut self) -> Message {
        let next = |it: &Self| {
            it.shared
                .templates
                .get(it.prepared.len())
                .map(|it| it.is_new)
        };
        while next(self) == Some(true) {
            self.prepared.push(None);
        }
        if self.prepared.len() < self.shared.templates.len() {
            return Message::Aside;
        }
        self.stage = Stage::Ready;
        Message::Greeted
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
