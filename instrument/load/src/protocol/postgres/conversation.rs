//! One connection: the log-in, the statements prepared, then trip after trip.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::errors::kind;
use super::log_in::LogIn;
use super::message::{
    self, Frame, first_number, found_nothing, frame, parameter_types, server_error,
};
use super::request::{SYNC, put_parse, put_query};
use super::{Conversation, ProtocolError, Shared, refused};
use crate::protocol::{Message, Received};
use crate::workload::{Answer, Numbers};

/// What the server says of itself when it is ready: inside a transaction that has failed.
const FAILED: &[u8] = b"E";

#[derive(Debug)]
pub struct Connection {
    shared: Arc<Shared>,
    stage: Stage,
    /// In the order in which the server gets ready after them.
    awaited: VecDeque<Awaited>,
    trip: Trip,
}

#[derive(Debug)]
enum Stage {
    LogIn(LogIn),
    Preparing(Preparing),
    Ready,
}

/// What was heard of the statements that are being prepared.
#[derive(Debug, Default)]
struct Preparing {
    parsed: usize,
    /// Of the parameters, by statement, if they were asked for.
    types: Vec<Vec<u32>>,
}

#[derive(Debug)]
enum Awaited {
    Trip,
    /// A statement that is not prepared: its error is told in full.
    Once,
    /// A rollback of our own, and the error that made it necessary, if it is not yet told.
    Rollback(Option<Answer>),
}

/// What a trip has brought so far.
#[derive(Debug, Default)]
struct Trip {
    number: Option<i64>,
    nothing: bool,
    error: Option<String>,
}

impl Connection {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            stage: Stage::LogIn(LogIn::default()),
            awaited: VecDeque::new(),
            trip: Trip::default(),
        }
    }

    fn greeted(&mut self, frame: Frame<'_>, out: &mut Vec<u8>) -> Result<Message, ProtocolError> {
        let shared = &*self.shared;
        match (&mut self.stage, frame.kind) {
            (Stage::LogIn(_), b'Z') if shared.queries.is_empty() => {
                let templates = shared.templates_of(&[])?;
                shared.templates.get_or_init(|| templates);
                return Ok(self.ready());
            }
            (Stage::LogIn(_), b'Z') => {
                let describe = shared.templates.get().is_none();
                for query in &shared.queries {
                    put_parse(query, describe, out)
                        .map_err(|error| refused(query, &error.to_string()))?;
                }
                out.extend_from_slice(&SYNC);
                self.stage = Stage::Preparing(Preparing::default());
            }
            (Stage::LogIn(log_in), _) => log_in.heard(frame, &shared.greeting, out)?,
            (Stage::Preparing(preparing), b'1') => preparing.parsed += 1,
            (Stage::Preparing(preparing), b't') => {
                let types = parameter_types(frame.body);
                let types = types.ok_or_else(|| message::garbage(frame.body))?;
                preparing.types.push(types);
            }
            (Stage::Preparing(preparing), b'E') => {
                // Nothing behind the first that is refused is answered, up to Sync.
                let query = shared.queries.get(preparing.parsed);
                let error = server_error(frame.body);
                let text = format!("{} ({})", error.text, error.code);
                return Err(refused(query.unwrap_or(&shared.queries[0]), &text));
            }
            (Stage::Preparing(preparing), b'Z') => {
                if shared.templates.get().is_none() {
                    let templates = shared.templates_of(&preparing.types)?;
                    // Another connection may have been quicker, with the same.
                    shared.templates.get_or_init(|| templates);
                }
                return Ok(self.ready());
            }
            // No rows, rows, settings, notices.
            (Stage::Preparing(_), _) | (Stage::Ready, _) => {}
        }
        Ok(Message::Aside)
    }

    fn ready(&mut self) -> Message {
        self.stage = Stage::Ready;
        Message::Greeted
    }

    /// Hears a message; something for the caller when a trip is answered.
    fn heard(
        &mut self,
        frame: Frame<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Message>, ProtocolError> {
        match frame.kind {
            b'D' => self.trip.number = first_number(frame.body),
            b'C' => self.trip.nothing = found_nothing(frame.body),
            b'Z' => return self.server_is_ready(frame.body, out),
            b'E' => self.failed(frame.body),
            // Nothing is copied here.
            b'G' => out.extend_from_slice(b"f\0\0\0\x05\0"),
            // Bind complete, empty query, rows to come, notices, settings, notifications …
            _ => {}
        }
        Ok(None)
    }

    /// Keeps an error for when the server is ready. After one that ends the session it never is: what
    /// it had done of the trip is not known, and the trip stays unanswered, in doubt.
    fn failed(&mut self, body: &[u8]) {
        let error = server_error(body);
        let told = match self.awaited.front() {
            Some(Awaited::Once) => format!("{} ({})", error.text, error.code),
            _ => kind(&error.code),
        };
        self.trip.error.get_or_insert(told);
    }

    /// The server has done what it was asked for.
    fn server_is_ready(
        &mut self,
        state: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Message>, ProtocolError> {
        let trip = std::mem::take(&mut self.trip);
        let answer = match self.awaited.pop_front() {
            Some(Awaited::Trip | Awaited::Once) => trip.answer(),
            Some(Awaited::Rollback(answer)) => return Ok(answer.map(Message::Answer)),
            None => return Err(ProtocolError::Unasked("ready".to_owned())),
        };
        if state != FAILED {
            return Ok(Some(Message::Answer(answer)));
        }
        let own = |it: &Awaited| matches!(it, Awaited::Rollback(_));
        if self.awaited.iter().any(own) {
            return Ok(Some(Message::Answer(answer)));
        }
        put_query("ROLLBACK", out);
        // Answers keep their order: with others under way this one cannot wait for the rollback.
        let alone = self.awaited.is_empty();
        let (held, told) = match alone {
            true => (Some(answer), None),
            false => (None, Some(Message::Answer(answer))),
        };
        self.awaited.push_back(Awaited::Rollback(held));
        Ok(told)
    }
}

impl Trip {
    fn answer(self) -> Answer {
        match (self.error, self.nothing) {
            (Some(kind), _) => Answer::Error(kind),
            (None, true) => Answer::Nothing,
            (None, false) => Answer::Done(self.number),
        }
    }
}

impl Conversation for Connection {
    fn greet(&mut self, out: &mut Vec<u8>) -> bool {
        self.shared.greeting.put(out);
        true
    }

    fn ask(&mut self, statements: Range<usize>, numbers: &Numbers, out: &mut Vec<u8>) {
        self.awaited.push_back(Awaited::Trip);
        let templates = self.shared.templates.get().expect("made by the greeting");
        for template in &templates[statements] {
            template.put(numbers, out);
        }
        out.extend_from_slice(&SYNC);
    }

    fn ask_once(&mut self, statement: &str, out: &mut Vec<u8>) {
        self.awaited.push_back(Awaited::Once);
        put_query(statement, out);
    }

    fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Received, ProtocolError> {
        let mut consumed = 0;
        while let Some(frame) = frame(&input[consumed..])? {
            consumed += frame.length();
            let message = match self.stage {
                Stage::Ready => self.heard(frame, out)?,
                _ => Some(self.greeted(frame, out)?).filter(|it| *it != Message::Aside),
            };
            if let Some(message) = message {
                return Ok(Received { consumed, message });
            }
        }
        let message = match consumed {
            0 => Message::Partial,
            _ => Message::Aside,
        };
        Ok(Received { consumed, message })
    }
}
