//! The protocol of MariaDB and MySQL: the handshake of version 10, prepared statements executed in
//! binary, and several statements as one text.
//!
//! A trip of one statement executes what was prepared when the connection began. A trip of several
//! is a text, because there alone the server stops at the first error: of commands sent one behind
//! the other it would go on to the next, and end a transaction that it had rolled back.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::{Conversation, Message, Protocol, ProtocolError, Received};
use crate::workload::{Answer, Numbers, Statement};

mod handshake;
mod packet;
mod password;
mod refusal;
mod reply;
mod request;

use handshake::{Handshake, Switch};
use packet::Packet;
use password::Method;
use reply::{Prepared, Read, Results, ServerError};
use request::Template;

const NAME: &str = "MySQL's protocol";
const OK: u8 = 0x00;
const MORE: u8 = 0x01;
const SWITCH: u8 = 0xfe;
/// What "caching_sha2_password" says: it knows the password already, or wants all of it.
const KNOWN: &[u8] = &[3];
const WANTED: &[u8] = &[4];

/// How connections begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Greeting {
    pub user: String,
    pub password: Option<String>,
    pub database: Option<String>,
    /// Over a Unix socket, where nobody can read along.
    pub local: bool,
}

impl Greeting {
    fn password(&self) -> &str {
        self.password.as_deref().unwrap_or_default()
    }
}

/// What all connections of a run share.
#[derive(Debug)]
pub struct MySql {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    templates: Vec<Template>,
    greeting: Greeting,
}

impl MySql {
    pub fn new(statements: &[Statement], greeting: Greeting) -> Self {
        let templates = statements.iter().map(Template::of).collect();
        Self {
            shared: Arc::new(Shared {
                templates,
                greeting,
            }),
        }
    }
}

impl Protocol for MySql {
    fn conversation(&self) -> Box<dyn Conversation> {
        Box::new(Connection {
            shared: self.shared.clone(),
            stage: Stage::Handshake,
            sequence: 0,
            prepared: Vec::new(),
            trips: VecDeque::new(),
            results: Results::default(),
            failed: None,
        })
    }
}

/// A connection to a server.
#[derive(Debug)]
struct Connection {
    shared: Arc<Shared>,
    stage: Stage,
    /// Of the packet that comes next.
    sequence: u8,
    /// Number of each statement that could be prepared.
    prepared: Vec<Option<u32>>,
    /// In the order in which their answers come: whether each is of a prepared statement.
    trips: VecDeque<bool>,
    results: Results,
    /// The answer to the first trip, once what it began is rolled back.
    failed: Option<Answer>,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Handshake,
    Login(Method),
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
        match prepared {
            Some(id) => templates[0].put_execute(id, numbers, out),
            None => request::put_query(templates, numbers, out),
        }
        if self.trips.is_empty() {
            self.results.begin(prepared.is_some());
        }
        self.trips.push_back(prepared.is_some());
    }

    fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Received, ProtocolError> {
        let Some(packet) = packet::first(input, self.sequence)? else {
            return Ok(Received {
                consumed: 0,
                message: Message::Partial,
            });
        };
        self.sequence = packet.sequence;
        let Packet {
            payload, consumed, ..
        } = packet;
        let message = match self.stage {
            Stage::Handshake => self.shake(&payload, out)?,
            Stage::Login(method) => self.log_in(method, &payload, out)?,
            Stage::Preparing(0) => self.prepare(&payload)?,
            Stage::Preparing(left) => self.after_preparing(left - 1),
            Stage::Ready => self.hear(&payload, out)?,
        };
        Ok(Received { consumed, message })
    }
}

impl Connection {
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
        self.sequence = packet::put(self.sequence, out, |out| fill(greeting, out));
    }

    /// Asks to prepare all statements together.
    fn logged_in(&mut self, out: &mut Vec<u8>) -> Message {
        for template in &self.shared.templates {
            template.put_prepare(out);
        }
        self.after_preparing(0)
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
            return Err(garbled(payload));
        }
        self.prepared.push(Some(prepared.id));
        Ok(self.after_preparing(prepared.packets))
    }

    /// Goes on with the next statement when nothing is left to come about the last.
    fn after_preparing(&mut self, left: usize) -> Message {
        self.stage = Stage::Preparing(left);
        if left == 0 {
            self.sequence = 1;
            if self.prepared.len() == self.shared.templates.len() {
                self.stage = Stage::Ready;
                return Message::Greeted;
            }
        }
        Message::Aside
    }

    /// An answer to what was asked.
    fn hear(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<Message, ProtocolError> {
        if self.trips.is_empty() {
            let said = ServerError::parse(payload).map(|it| it.to_string());
            let said = said.unwrap_or_else(|| shown(payload));
            return Err(ProtocolError::Unasked(said));
        }
        let answer = match self.results.read(payload) {
            None => return Err(garbled(payload)),
            Some(Read::More) => return Ok(Message::Aside),
            Some(Read::Answer(answer)) => self.failed.take().unwrap_or(answer),
            Some(Read::Error(error)) if self.failed.is_some() => {
                return Err(refusal::of_statement("ROLLBACK", &error));
            }
            Some(Read::Error(error)) => {
                let answer = Answer::Error(error.kind());
                if self.results.in_transaction {
                    request::put_command("ROLLBACK", out);
                    self.failed = Some(answer);
                    self.next(false);
                    return Ok(Message::Aside);
                }
                answer
            }
        };
        self.trips.pop_front();
        self.next(self.trips.front().copied().unwrap_or_default());
        Ok(Message::Answer(answer))
    }

    /// Gets ready for the results of the next command.
    fn next(&mut self, binary: bool) {
        self.sequence = 1;
        self.results.begin(binary);
    }
}

fn garbled(input: &[u8]) -> ProtocolError {
    ProtocolError::Garbage(shown(input), NAME)
}

fn shown(input: &[u8]) -> String {
    String::from_utf8_lossy(&input[..input.len().min(40)]).into_owned()
}

#[cfg(test)]
mod tests;
