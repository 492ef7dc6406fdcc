//! The conversation on one connection: handshake, log-in, variables, preparing all statements, then
//! requests.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::handshake::{Handshake, Method, Switch};
use super::login::Login;
use super::packet::{self, HEADER, Packet, garbled, shown};
use super::reply::{Command, Prepared, Read, Results, ServerError};
use super::request::Template;
use super::{refusal, request};
use crate::protocol::{Conversation, Message, ProtocolError, Received};
use crate::workload::{Answer, Parameters};

const OK: u8 = 0x00;
const MORE: u8 = 0x01;
const SWITCH: u8 = 0xfe;
/// Messages of "caching_sha2_password": the server knows the password, or requests it in clear text.
const KNOWN: &[u8] = &[3];
const WANTED: &[u8] = &[4];

/// What all connections of a run share.
#[derive(Debug)]
pub struct Shared {
    pub templates: Vec<Template>,
    pub login: Login,
}

/// The conversation on one connection.
#[derive(Debug)]
pub struct MySqlConversation {
    shared: Arc<Shared>,
    stage: Stage,
    /// Sequence number of the packet that comes next, within an answer or the log-in.
    sequence: Option<u8>,
    /// Sequence number of the first packet that answers each command under way: it continues the
    /// count of the command's packets, which are several if the command is long.
    first_sequences: VecDeque<u8>,
    /// Id of each statement that could be prepared.
    prepared: Vec<Option<u32>>,
    /// In the order in which their answers come.
    pending: VecDeque<PendingRequest>,
    results: Results,
    /// The answer to the first request, kept until its transaction is rolled back.
    failed: Option<Answer>,
    /// The code of the error after which the server closes the connection.
    farewell: Option<String>,
}

#[derive(Debug, Clone, Copy)]
struct PendingRequest {
    command: Command,
    /// Not the workload's: its error is reported in full.
    once: bool,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Handshake,
    Login(Method),
    SettingVariables,
    /// So many packets about the last prepared statement are still to come.
    Preparing(usize),
    Ready,
}

impl Conversation for MySqlConversation {
    fn begin(&mut self, _out: &mut Vec<u8>) -> bool {
        // The server sends the first message.
        true
    }

    fn request(&mut self, statements: Range<usize>, parameters: &Parameters, out: &mut Vec<u8>) {
        let first = statements.start;
        let templates = &self.shared.templates[statements];
        let prepared = match templates {
            [_] => self.prepared[first],
            _ => None,
        };
        let answer = match prepared {
            Some(id) => templates[0].put_execute(id, parameters, out),
            None => request::put_query(templates, parameters, out),
        };
        self.first_sequences.push_back(answer);
        let command = Command {
            binary: prepared.is_some(),
            changes: templates.last().is_some_and(|it| it.changes),
        };
        self.requested(PendingRequest {
            command,
            once: false,
        });
    }

    fn request_once(&mut self, statement: &str, out: &mut Vec<u8>) {
        let answer = request::put_command(statement, out);
        self.first_sequences.push_back(answer);
        self.requested(PendingRequest {
            command: Command::default(),
            once: true,
        });
    }

    fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Received, ProtocolError> {
        let first = self.first_sequences.front().copied();
        let is_unasked = self.sequence.is_none() && (first.is_none() || begins_own_sequence(input));
        let sequence = self.sequence.or(first.filter(|_| !is_unasked));
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
            Stage::Handshake => self.answer_handshake(&payload, out)?,
            Stage::Login(method) => self.log_in(method, &payload, out)?,
            Stage::SettingVariables => self.variables_set(&payload)?,
            Stage::Preparing(0) => self.prepare(&payload)?,
            Stage::Preparing(left) => self.after_preparing(left - 1),
            Stage::Ready if is_unasked => {
                self.sequence = None;
                self.take_farewell(&payload)?
            }
            Stage::Ready => self.receive_result(&payload, out)?,
        };
        Ok(Received { consumed, message })
    }

    fn farewell(&self) -> Option<&str> {
        self.farewell.as_deref()
    }
}

impl MySqlConversation {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            stage: Stage::Handshake,
            sequence: Some(0),
            first_sequences: VecDeque::new(),
            prepared: Vec::new(),
            pending: VecDeque::new(),
            results: Results::default(),
            failed: None,
            farewell: None,
        }
    }

    /// The answer to a command has ended.
    fn answered(&mut self) {
        self.first_sequences.pop_front();
        self.sequence = None;
    }

    fn requested(&mut self, request: PendingRequest) {
        if self.pending.is_empty() {
            self.results.begin(request.command);
        }
        self.pending.push_back(request);
    }

    /// Takes a packet of the answer to the first pending request.
    fn receive_result(
        &mut self,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Message, ProtocolError> {
        let Some(request) = self.pending.front().copied() else {
            return Err(ProtocolError::Unasked(shown(payload)));
        };
        let answer = match self.results.read(payload) {
            None => return Err(garbled(payload)),
            Some(Read::More) => return Ok(Message::Intermediate),
            Some(Read::Answer(answer)) => self.failed.take().unwrap_or(answer),
            // The server closes the connection next; then all that is pending is in doubt.
            Some(Read::Error(error)) if error.ends_connection() => {
                self.farewell = Some(error.code.to_string());
                return Ok(Message::Intermediate);
            }
            Some(Read::Error(error)) if self.failed.is_some() => {
                return Err(refusal::of_statement("ROLLBACK", &error));
            }
            Some(Read::Error(error)) => {
                let answer = Answer::Error(match request.once {
                    true => error.to_string(),
                    false => error.kind(),
                });
                if self.results.in_transaction {
                    self.answered();
                    self.first_sequences
                        .push_front(request::put_command("ROLLBACK", out));
                    self.results.begin(Command::default());
                    self.failed = Some(answer);
                    return Ok(Message::Intermediate);
                }
                answer
            }
        };
        self.answered();
        self.pending.pop_front();
        if let Some(next) = self.pending.front() {
            self.results.begin(next.command);
        }
        Ok(Message::Answer(answer))
    }

    /// Takes a packet that answers no request: the server may announce that it closes the connection.
    fn take_farewell(&mut self, payload: &[u8]) -> Result<Message, ProtocolError> {
        match ServerError::parse(payload) {
            Some(error) if error.ends_connection() => {
                self.farewell = Some(error.code.to_string());
                Ok(Message::Intermediate)
            }
            Some(error) => Err(ProtocolError::Unasked(error.to_string())),
            None => Err(ProtocolError::Unasked(shown(payload))),
        }
    }

    /// Answers the server's handshake.
    fn answer_handshake(
        &mut self,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Message, ProtocolError> {
        if let Some(error) = ServerError::parse(payload) {
            return Err(refusal::of_login(&error));
        }
        let handshake = Handshake::parse(payload)?;
        self.stage = Stage::Login(handshake.method);
        self.put_login(out, |login, out| handshake.put_answer(login, out));
        Ok(Message::Intermediate)
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
                self.put_login(out, |login, out| {
                    out.extend(method.answer(login.password(), switch.scramble));
                });
            }
            Some((&MORE, KNOWN)) if method == Method::CachingSha2 => {}
            Some((&MORE, WANTED)) if method == Method::CachingSha2 => {
                if !self.shared.login.local {
                    return Err(refusal::of_whole_password());
                }
                self.put_login(out, |login, out| {
                    out.extend_from_slice(login.password().as_bytes());
                    out.push(0);
                });
            }
            _ => return Err(garbled(payload)),
        }
        Ok(Message::Intermediate)
    }

    /// Writes a packet of the log-in.
    fn put_login(&mut self, out: &mut Vec<u8>, fill: impl FnOnce(&Login, &mut Vec<u8>)) {
        let login = &self.shared.login;
        let sequence = self.sequence.unwrap_or(0);
        self.sequence = Some(packet::put(sequence, out, |out| fill(login, out)));
    }

    /// Sets the variables and prepares all statements; all commands are sent together.
    fn logged_in(&mut self, out: &mut Vec<u8>) -> Message {
        let variables = &self.shared.login.variables;
        self.first_sequences
            .push_back(request::put_variables(variables, out));
        for template in self.shared.templates.iter().filter(|it| !it.is_new) {
            self.first_sequences.push_back(template.put_prepare(out));
        }
        self.stage = Stage::SettingVariables;
        self.sequence = None;
        Message::Intermediate
    }

    fn variables_set(&mut self, payload: &[u8]) -> Result<Message, ProtocolError> {
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

    /// Goes on to the next statement when all packets about the last one have come.
    fn after_preparing(&mut self, left: usize) -> Message {
        self.stage = Stage::Preparing(left);
        if left > 0 {
            return Message::Intermediate;
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
            return Message::Intermediate;
        }
        self.stage = Stage::Ready;
        Message::Ready
    }
}

/// Whether the packet is the first of a sequence that the server begins: it answers no request.
fn begins_own_sequence(input: &[u8]) -> bool {
    input.get(HEADER - 1) == Some(&0)
}
